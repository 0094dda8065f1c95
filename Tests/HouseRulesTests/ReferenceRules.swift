import Foundation
import Synchronization

/// Rules for references: a cited rule, a linked heading and a linked file must be in the repository.
extension HouseRule {
    static let unknownRuleIDs = HouseRule(
        description: "cited rule ids are rows of Shared/Rules.md",
        sample: SourceFile(path: "Shared/A/A/A.swift", text: "/// One place decides this (D999)."),
        violations: { file in
            guard file.citesRules else { return [] }
            return file.matching { line in
                let unknown = RuleIDs.cited(in: file.prose(of: line)).filter { !RuleIDs.all.contains($0) }
                return unknown.isEmpty ? nil : "no such rule: \(unknown.joined(separator: ", "))"
            }
        })

    static let foreignDocuments = HouseRule(
        description: "no text cites a document outside the repository",
        sample: SourceFile(path: "Shared/A/A/A.swift", text: "/// The head moves first (design §4)."),
        violations: { file in
            guard file.citesRules else { return [] }
            return file.matching { line in
                ["spec ", "spec, ", "design §", "reliability ", "two-way §"].contains { mark in
                    line.range(of: mark).map {
                        line[$0.upperBound...].first?.isUppercase == true || mark.hasSuffix("§")
                    }
                        ?? false
                } ? "cite Shared/Rules.md" : nil
            }
        })

    static let deadLinks = HouseRule(
        description: "links to files and headings resolve",
        sample: SourceFile(path: "README.md", text: "See [this](Shared/no-such-file.md)."),
        violations: { file in
            guard file.suffix == "md" else { return [] }
            let folder = SourceFile.root.appending(path: file.path).deletingLastPathComponent()
            return file.matching { line in
                guard line.contains("](") else { return nil }
                let missing = line.matches(of: /\]\(([^)#\s]*)(?:#([^)\s]*))?\)/).compactMap { match -> String? in
                    let (_, target, heading) = match.output
                    guard !target.contains("://") else { return nil }
                    let url =
                        target.isEmpty
                        ? SourceFile.root.appending(path: file.path) : folder.appending(path: String(target))
                    guard FileManager.default.fileExists(atPath: url.path) else { return String(target) }
                    guard let heading, target.isEmpty || target.hasSuffix(".md") else { return nil }
                    return Headings.anchors(in: url).contains(String(heading)) ? nil : "\(target)#\(heading)"
                }
                return missing.isEmpty ? nil : "no such file or heading: \(missing.joined(separator: ", "))"
            }
        })

    static let deadDesignLinks = HouseRule(
        description: "headings of Design.md that code names exist",
        sample: SourceFile(path: "Shared/A/A/A.swift", text: "/// One clock (Design.md#no-such-heading)."),
        violations: { file in
            guard file.citesRules, file.suffix != "md" else { return [] }
            let anchors = Headings.anchors(in: SourceFile.root.appending(path: "Shared/Design.md"))
            return file.text.places(of: #"Design\.md#[a-z0-9-]+"#).compactMap { line, link in
                let heading = String(link.dropFirst("Design.md#".count))
                return anchors.contains(heading) ? nil : Violation(line: line, what: "no such heading: \(heading)")
            }
        })
}

/// The ids of Shared/Rules.md.
private enum RuleIDs {
    private static let families: Set<Substring> = [
        "W", "D", "H", "V", "C", "K", "S", "RES", "ENT", "SVC", "R", "SEC", "I", "F", "T",
    ]

    /// The words of a text that have the form of an id: a family and one to three digits.
    static func cited(in text: Substring) -> [String] {
        guard text.utf8.contains(where: { (0x30...0x39).contains($0) }) else { return [] }
        return text.split { !($0.isLetter || $0.isNumber || $0 == "_") }.filter { word in
            let family = word.prefix { $0.isLetter }
            let digits = word.dropFirst(family.count)
            return families.contains(family) && (1...3).contains(digits.count) && digits.allSatisfy(\.isNumber)
        }.map { String($0) }
    }

    static let all: Set<String> = {
        let file = SourceFile.root.appending(path: "Shared/Rules.md")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return Set(text.matches(of: /(?m)^\| ([A-Z]+\d+) \|/).map { String($0.output.1) })
    }()
}

/// The anchors that GitHub and GitLab create for the headings of a document.
private enum Headings {
    private static let known = Mutex<[URL: Set<String>]>([:])

    static func anchors(in file: URL) -> Set<String> {
        let url = file.standardizedFileURL
        return known.withLock { known in
            if let anchors = known[url] { return anchors }
            let anchors = read(url)
            known[url] = anchors
            return anchors
        }
    }

    private static func read(_ file: URL) -> Set<String> {
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [] }
        var isCode = false
        var anchors: [String: Int] = [:]
        for line in text.components(separatedBy: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, line.hasPrefix("#"), let title = line.wholeMatch(of: /#{1,6} (.+)/)?.output.1 else {
                continue
            }
            let kept = title.lowercased().unicodeScalars.filter {
                $0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == " " || $0 == "-" || $0 == "_"
            }
            let anchor = String(String.UnicodeScalarView(kept)).replacingOccurrences(of: " ", with: "-")
            anchors[anchor, default: 0] += 1
        }
        // A second heading with the same text gets "-1", a third one "-2".
        return Set(anchors.flatMap { name, count in [name] + (1..<max(count, 1)).map { "\(name)-\($0)" } })
    }
}

extension SourceFile {
    /// Whether the file can cite rules. The files of this folder contain samples, so they cannot.
    fileprivate var citesRules: Bool {
        ["swift", "sql", "proto", "md", "sh", "js", "java"].contains(suffix)
            && !path.hasPrefix("Tests/HouseRulesTests/")
            && !path.hasSuffix(".pb.swift")
    }
}
