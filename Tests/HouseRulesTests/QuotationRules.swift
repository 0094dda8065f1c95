import Foundation

/// The rule for code that a page quotes from a file of the repository: `<!-- from PATH -->` stands above its block.
extension HouseRule {
    /// An app developer sees at once what a task needs.
    private static let mostLines = 15

    static let staleQuotations = HouseRule(
        description: "quoted code is in its file word by word, and has at most 15 lines",
        sample: SourceFile(
            path: "A.md", text: "<!-- from Package.swift -->\n```swift\nimport PackageDescription // not so\n```"),
        violations: { file in
            guard file.suffix == "md" else { return [] }
            return file.lines.indices.compactMap { index in
                guard file.lines[index].hasPrefix("<!-- from "),
                    let path = file.lines[index].wholeMatch(of: /<!-- from (\S+) -->/)?.output.1
                else { return nil }
                let block = Array(file.lines.dropFirst(index + 2).prefix { !$0.hasPrefix("```") })
                let url = SourceFile.root.appending(path: String(path))
                let source = (try? String(contentsOf: url, encoding: .utf8))?.components(separatedBy: "\n") ?? []
                if block.isEmpty || !contains(source, block) {
                    return Violation(line: index + 1, what: "\(path) does not have these lines")
                }
                let count = block.count { !$0.isEmpty }
                return count > mostLines ? Violation(line: index + 1, what: "\(count) lines of code") : nil
            }
        })

    /// Whether the lines stand one after the other in a file, where all of them can be indented more.
    private static func contains(_ source: [String], _ block: [String]) -> Bool {
        guard let first = block.first, source.count >= block.count else { return false }
        return (0...source.count - block.count).contains { start in
            guard source[start].hasSuffix(first) else { return false }
            let indent = source[start].dropLast(first.count)
            guard indent.allSatisfy({ $0 == " " }) else { return false }
            return zip(source[start...], block).allSatisfy { $0 == $1 || ($0 == indent + $1) }
        }
    }
}
