// What is wrong with a record, told to the developer on the device and to nobody else: it shows values of the record.

/// One thing that is wrong: the feature's name in the record, what is wrong there, and what would be right.
public struct Problem: Equatable, Sendable { public let feature: String, wrong: String, right: String }
private let (mostNamed, longestShown) = (12, 60)
/// Whatever in `record` would not be answered as it was meant, of all features at once; then names that the campaign does not know,
/// and a label that it has not declared. A number beyond its bounds is none: it is clipped.
func problems(_ campaign: Campaign, _ record: Record, _ label: Any?) -> [Problem] {
    let unusable = campaign.features.compactMap { feature in
        wrong(with: feature, record[feature.name]).map { Problem(feature: feature.name, wrong: $0, right: feature.values.wanted) }
    }
    let known = campaign.features.map(\.name)
    let unknown = record.names.filter { !known.exact.contains(ExactText($0)) }
    let given = label.map(Meaning.init)
    let isDeclared = given.map { campaign.label.index(of: $0) != nil } ?? true
    let (name, classes) = (campaign.label.name, campaign.label.classes)
    let undeclared = Problem(
        feature: name, wrong: "\(given?.shown ?? "") is not declared", right: name.isEmpty ? "no label" : "one of \(listed(classes))")
    return unusable + unknown.map { Problem(feature: $0, wrong: "is no feature of the campaign", right: "one of \(listed(known))") }
        + (isDeclared ? [] : [undeclared])
}
private func wrong(with feature: Feature, _ value: Meaning) -> String? {
    if value.text == nil && value.number == nil {
        return feature.missing || feature.index(of: .nothing) != nil ? nil : "it holds no value"
    }
    return feature.values.wrong(with: value).map { "\(value.shown) \($0)" }
}
func listed(_ texts: [String]) -> String {
    texts.prefix(mostNamed).joined(separator: ", ") + (texts.count > mostNamed ? ", ..." : "")
}

extension Meaning {
    fileprivate var shown: String {
        switch self {
        case .nothing: "nothing"
        case .text(let text): "\"\(text.prefix(longestShown))\""
        case .number(let number): "\(number)"
        case .whole(let digits): "\(digits.prefix(longestShown))"
        }
    }
}
