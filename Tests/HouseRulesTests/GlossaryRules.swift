import Foundation

/// The rule for words: texts use the terms of Shared/Glossary.md.
extension HouseRule {
    static let replacedWords = HouseRule(
        description: "texts use the terms of the glossary",
        sample: SourceFile(path: "Shared/A/A/A.swift", text: "/// The \(Glossary.sampleWord)s of a device."),
        violations: { file in
            guard file.path != Glossary.path else { return [] }
            return file.textWithoutCode.places(of: Glossary.pattern, ignoringCase: true).map { line, match in
                let found = match.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
                // A word that the glossary does not have is a plural.
                let word = Glossary.terms[found] == nil ? String(found.dropLast()) : found
                let terms = Glossary.terms[word] ?? []
                return Violation(line: line, what: "\(word): write \(terms.joined(separator: " or "))")
            }
        })
}

/// The words that Shared/Glossary.md has replaced: those in bold in the last column of its tables.
enum Glossary {
    static let path = "Shared/Glossary.md"

    /// The terms to write, by the replaced word in lower case.
    static let terms: [String: [String]] = {
        let text = (try? String(contentsOf: SourceFile.root.appending(path: path), encoding: .utf8)) ?? ""
        var terms: [String: [String]] = [:]
        for row in text.matches(of: /(?m)^\| ([^|]+) \|.*\|([^|]*)\|$/) {
            for word in row.output.2.matches(of: /\*\*([^*]+)\*\*/) {
                terms[word.output.1.lowercased(), default: []].append(String(row.output.1))
            }
        }
        return terms
    }()

    /// Matches each replaced word and its plural. A line can end between the parts of a word.
    fileprivate static let pattern: String = {
        let words = terms.keys.sorted().map { $0.replacing(" ", with: #"\s+"#) }
        return #"\b("# + words.joined(separator: "|") + #")s?\b"#
    }()

    /// The shortest replaced word; "" if the glossary has none.
    static var sampleWord: String { terms.keys.sorted().min { $0.count < $1.count } ?? "" }
}

extension SourceFile {
    /// The text for readers, at its lines: comments, docstrings, names of tests, and documents without their code.
    fileprivate var textWithoutCode: String {
        var isFenced = false
        let texts = lines.indices.map { index -> Substring in
            let line = lines[index]
            switch suffix {
            case "md":
                if line.contains("```") { isFenced.toggle() }
                return isFenced ? "" : line[...]
            case "py":
                let marks = line.ranges(of: "\"\"\"").count
                defer { if !marks.isMultiple(of: 2) { isFenced.toggle() } }
                return isFenced || marks > 0 ? line[...] : prose(of: line)
            default:
                return index > 0 && lines[index - 1].hasSuffix("@Test(") ? line[...] : prose(of: line)
            }
        }
        // Without code spans, marks of comments and names of parameters.
        return texts.joined(separator: "\n")
            .replacing(/`+[^`\n]+`+/, with: "`")
            .replacing(/(?m)^ *(\/\/+|--+|#+|>)(( *- )(Parameter )?\w+:)?/, with: "")
    }
}
