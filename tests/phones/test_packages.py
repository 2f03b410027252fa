"""The packages that phones take: what Maven asks for, and what the rest of the project says, too."""

import re
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from urllib.parse import urlsplit

from phone_programs import KOTLIN, ROOT, built

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
POM = {"": "http://maven.apache.org/POM/4.0.0"}
SOURCES = ROOT / "kotlin" / "src"


def test_the_pom_of_the_kotlin_client_has_all_that_maven_central_asks_for_and_what_the_project_says():
    pom = ET.parse(ROOT / "kotlin" / "pom.xml").getroot()

    def said(path):
        found = pom.find(path, POM)
        assert found is not None, path
        return (found.text or "").strip()

    home = PYPROJECT["urls"]["Homepage"]
    domain, name = urlsplit(home).hostname, urlsplit(home).path.strip("/")
    package = ".".join([*reversed(domain.split(".")), name.replace("-", "")])
    assert said("groupId") == package
    assert (said("artifactId"), said("version")) == ("ldp-bayes-client", PYPROJECT["version"])
    assert (said("url"), said("scm/url")) == (home, PYPROJECT["urls"]["Repository"])
    assert (said("licenses/license/name"), said("packaging")) == (PYPROJECT["license"], "jar")
    assert all(said(path) for path in ("name", "description", "developers/developer/name"))
    packages = {re.search(r"^package ([\w.]+)$", path.read_text("utf-8"), re.M)[1] for path in SOURCES.rglob("*.kt")}
    assert packages == {package, f"{package}.testing"}
    gradle = (ROOT / "kotlin" / "build.gradle.kts").read_text(encoding="utf-8")
    assert f'group = "{package}"' in gradle
    assert f'version = "{said("version")}"' in gradle
    (library,) = pom.findall("dependencies/dependency", POM)
    assert [one.text for one in library] == ["org.jetbrains.kotlin", "kotlin-stdlib", "2.2.0"]
    assert 'kotlin("jvm") version "2.2.0"' in gradle


def test_the_kotlin_client_comes_with_its_sources():
    built("kotlin")
    with zipfile.ZipFile(KOTLIN / "ldp-bayes-client-sources.jar") as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    written = {f"org/example/ldpbayes/{path.name}": path.read_bytes() for path in SOURCES.glob("main/kotlin/*.kt")}
    assert packed == written


def test_the_kotlin_client_names_its_parameters_for_java():
    built("kotlin")
    with zipfile.ZipFile(KOTLIN / "ldp-bayes-client.jar") as archive:
        assert b"MethodParameters" in archive.read("org/example/ldpbayes/DeviceCampaign.class")
