import Foundation

/// A rule for files of the project, and a sample file that breaks it.
struct HouseRule: Sendable, CustomStringConvertible {
    let description: String
    /// A file that breaks the rule.
    let sample: SourceFile
    /// Returns the violations in a file, with line numbers from 1.
    let violations: @Sendable (SourceFile) -> [Violation]

    struct Violation: Sendable {
        let line: Int
        let what: String
    }

    static let all = [
        lineWidth, fileLength, functionLength, mainLength, forcing, unparentedTasks, printing, sleepingTests,
        blockingTests, uncheckedWithoutReason, vagueNames, unfinished, typeNamedAsModule, deadLinks, deadDesignLinks,
        unknownRuleIDs, foreignDocuments, replacedWords, staleQuotations,
    ]

    private static let lineWidth = HouseRule(
        description: "lines of sources have at most 120 columns",
        sample: SourceFile(path: "deploy/up", text: String(repeating: "x", count: 121)),
        violations: { file in
            // The formatter checks Swift. A row of a table cannot be broken.
            let suffixes = ["md", "sh", "sql", "proto", "py", "java", "yml", "up", "down", "test"]
            guard suffixes.contains(file.suffix) else { return [] }
            return file.matching {
                $0.utf8.count > 120 && $0.count > 120 && !$0.hasPrefix("|") ? "\($0.count) columns" : nil
            }
        })

    private static let fileLength = HouseRule(
        description: "a file over 600 lines wants a second noun",
        sample: SourceFile(path: "A.swift", text: String(repeating: "\n", count: 601)),
        violations: { file in
            file.isSwift && file.lines.count > 601 ? [Violation(line: 1, what: "\(file.lines.count) lines")] : []
        })

    private static let functionLength = HouseRule(
        description: "functions have at most 70 lines",
        sample: SourceFile(
            path: "A.swift", text: "    func f() {\n" + String(repeating: "        g()\n", count: 71) + "    }\n"),
        violations: { file in
            guard file.isSwift else { return [] }
            return file.functions().filter { $0.length > 70 }.map {
                Violation(line: $0.line, what: "\($0.length) lines")
            }
        })

    private static let mainLength = HouseRule(
        description: "Main.swift has less than 40 lines",
        sample: SourceFile(path: "Services/A/Main.swift", text: String(repeating: "\n", count: 40)),
        violations: { file in
            guard file.path.hasSuffix("/Main.swift"), file.lines.count > 40 else { return [] }
            return [Violation(line: 1, what: "\(file.lines.count) lines")]
        })

    private static let forcing = pattern(
        "nothing is forced outside of tests", #"\btry!|\bas!|\bfatalError\("#, breaking: "let a = try! b()",
        where: { !$0.isTest })

    private static let unparentedTasks = pattern(
        "every task has a parent", #"\bTask\.detached\b|(^|[\s=(])Task(\.immediate)?(\([^)]*\))? \{"#,
        breaking: "Task(priority: .low) { }",
        // Calls of SyncApp and of the compatibility API return at once and have no caller's task, so an object owns and
        // ends their task. The steps of a simulation's tasks are events, and end with the simulation.
        // An action of a SwiftUI view has no task.
        where: {
            !$0.path.hasPrefix("deploy/samples/field-service/iOS/")
                && ![
                    "Shared/Client/MobileSync/App/SyncApp.swift", "Shared/Client/MobileSyncLegacy/LegacyRun.swift",
                    "Tests/SimulationTests/Simulation.swift",
                ].contains($0.path)
        })

    private static let printing = pattern(
        "services log, only commands of the tool and samples print", #"(^|\s)(print|debugPrint|NSLog)\("#,
        breaking: "    print(1)",
        where: { file in
            !file.isTest
                && !["Services/ControlTool/", "Shared/Testing/", "deploy/samples/"].contains(where: file.path.hasPrefix)
        })

    private static let sleepingTests = pattern(
        "tests wait for what they need, in one place", #"Task\.sleep|usleep\(|Thread\.sleep"#,
        breaking: "try await Task.sleep(for: .seconds(1))", at: "Tests/A.swift",
        where: { $0.isTest && $0.path != "Tests/TestSupport/Eventually.swift" })

    // Tasks have as many threads as there are processors, so two tests that block one stop all others.
    private static let blockingTests = pattern(
        "only named tests wait on a semaphore, on a thread or queue of their own", #"\bDispatchSemaphore\b"#,
        breaking: "let done = DispatchSemaphore(value: 0)", at: "Tests/A.swift",
        where: { file in
            file.isTest
                && ![
                    "Tests/LocalEntitiesTests/ObservationTests.swift",
                    "Tests/OfflineResourcesTests/ObservationTests.swift",
                    "Tests/ServiceTests/SessionValidator/ValidatorCalloutTests.swift",
                ].contains(file.path)
        })

    private static let uncheckedWithoutReason = HouseRule(
        description: "@unchecked and unsafe say why on the line above",
        sample: SourceFile(path: "A.swift", text: "\nfinal class A: @unchecked Sendable {}"),
        violations: { file in
            guard file.isSwift, !file.path.hasPrefix("Tests/HouseRulesTests/") else { return [] }
            return file.lines.indices.filter { index in
                ["@unchecked", "nonisolated(unsafe)"].contains(where: file.lines[index].contains)
                    && (index == 0 || !file.lines[index - 1].contains("//"))
            }.map { Violation(line: $0 + 1, what: "no reason given") }
        })

    private static let vagueNames = pattern(
        "types are named after what they are",
        #"\b(struct|class|enum|actor|protocol) (\w*(Manager|Helper|Util|Utils)|Common\w*|New[A-Z]\w*)\b"#,
        breaking: "final class SessionManager {", where: { _ in true })

    private static let unfinished = pattern(
        "nothing is left for later", #"\bTODO\b|\bFIXME\b|\bXXX\b|\.disabled\("#, breaking: "// TODO: later",
        where: { _ in true })

    private static let typeNamedAsModule = HouseRule(
        description: "a module contains no type of its own name",
        sample: SourceFile(path: "Shared/Drivers/AMQP/A.swift", text: "enum AMQP {}"),
        violations: { file in
            let parts = file.path.split(separator: "/")
            // Shared/<group>/<module>/…, Services/<module>/…
            guard file.isSwift, parts.count > 2 else { return [] }
            let module = parts.first == "Shared" ? parts[2] : parts[1]
            let declaration = try? Regex(#"\b(struct|class|enum|actor|protocol) "# + module + #"\b[^:+.]"#)
            return file.matching { line in
                guard let declaration, !file.isTest, line.contains(declaration) else { return nil }
                return "named as its module"
            }
        })

    private static func pattern(
        _ description: String, _ regex: String, breaking sample: String, at path: String = "Shared/A/A.swift",
        where applies: @escaping @Sendable (SourceFile) -> Bool
    ) -> HouseRule {
        HouseRule(
            description: description, sample: SourceFile(path: path, text: sample),
            violations: { file in
                // This folder contains the patterns and the samples.
                guard file.isSwift, applies(file), !file.path.hasPrefix("Tests/HouseRulesTests/") else { return [] }
                return file.text.places(of: regex).map { line, _ in
                    Violation(line: line, what: file.lines[line - 1].trimmingCharacters(in: .whitespaces))
                }
            })
    }
}

extension String {
    /// The matches of a pattern, with their lines from 1. `^` and `$` are the ends of a line; case is ignored on
    /// request. This is several times as fast as Swift's `Regex` for a whole file.
    func places(of pattern: String, ignoringCase: Bool = false) -> [(line: Int, text: String)] {
        let options: NSRegularExpression.Options =
            ignoringCase ? [.anchorsMatchLines, .caseInsensitive] : .anchorsMatchLines
        guard let expression = try? NSRegularExpression(pattern: pattern, options: options) else { return [] }
        let text = self as NSString
        var (line, end) = (1, 0)
        return expression.matches(in: self, range: NSRange(location: 0, length: text.length)).map { match in
            let found = text.substring(with: match.range)
            // A match can begin with the end of the line before.
            let start = match.range.location + found.prefix(while: \.isWhitespace).utf16.count
            let before = text.substring(with: NSRange(location: end, length: start - end))
            line += before.utf8.count { $0 == UInt8(ascii: "\n") }
            end = start
            return (line, found)
        }
    }
}

extension SourceFile {
    /// The part of the name after the last dot or slash.
    var suffix: String {
        path.split { $0 == "." || $0 == "/" }.last.map { String($0) } ?? ""
    }

    func matching(_ judge: (String) -> String?) -> [HouseRule.Violation] {
        lines.enumerated().compactMap { index, line in
            judge(line).map { HouseRule.Violation(line: index + 1, what: $0) }
        }
    }

    /// The functions of a formatted file: a closing brace is in the first column of its declaration.
    fileprivate func functions() -> [(line: Int, length: Int)] {
        text.places(of: #"^\s*([a-z@]\w*(\(\w+\))? )*(func |init[?(<])"#).compactMap { line, _ in
            let start = line - 1
            if lines[start].hasSuffix("}") { return (start + 1, 1) }
            let indent = lines[start].prefix { $0 == " " }
            guard let end = lines[start...].firstIndex(where: { $0 == indent + "}" }) else { return nil }
            return (start + 1, end - start + 1)
        }
    }
}
