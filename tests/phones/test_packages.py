"""The packages that phones take: what Maven asks for, and what the rest of the project says, too."""

import plistlib
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


def test_the_swift_package_is_found_by_its_url_and_has_a_privacy_manifest():
    """SwiftPM takes the manifest at a repository's root, and the stores a bundled list of what is collected."""
    package = (ROOT / "Package.swift").read_text(encoding="utf-8")
    assert [*ROOT.glob("*/Package.swift")] == []
    paths = re.findall(r'path: "([^"]+)"', package)
    assert [path for path in paths if not (ROOT / path).is_dir()] == []
    assert len(paths) == 5
    assert 'resources: [.copy("PrivacyInfo.xcprivacy")]' in package
    manifest = plistlib.loads((ROOT / "swift/Sources/LdpBayes/PrivacyInfo.xcprivacy").read_bytes())
    assert manifest["NSPrivacyTracking"] is False
    assert manifest["NSPrivacyTrackingDomains"] == []
    (collected,) = manifest["NSPrivacyCollectedDataTypes"]
    assert collected["NSPrivacyCollectedDataTypeLinked"] is collected["NSPrivacyCollectedDataTypeTracking"] is False
    assert [one["NSPrivacyAccessedAPITypeReasons"] for one in manifest["NSPrivacyAccessedAPITypes"]] == [["35F9.1"]]


def test_the_page_of_the_swift_client_lists_every_public_type_and_no_other():
    sources = (ROOT / "swift/Sources/LdpBayes").glob("*.swift")
    kinds = r"^public (?:final )?(?:struct|class|enum|protocol) (\w+)"
    public = [name for path in sources for name in re.findall(kinds, path.read_text(encoding="utf-8"), re.M)]
    page = (ROOT / "swift/Sources/LdpBayes/LdpBayes.docc/LdpBayes.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^- ``(\w+)``$", page, re.M)) == sorted(public)
    assert len(public) <= 33
