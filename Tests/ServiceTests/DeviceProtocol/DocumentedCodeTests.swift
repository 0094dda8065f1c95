import DeviceProtocol
import Foundation
import SyncModel
import TestSupport
import Testing

@Suite("The documented codes are the existing codes")
struct DocumentedCodeTests {
    @Test(
        "the backend developer's guide has every result code",
        arguments: ["deploy/guides/BackendDeveloper.md", "deploy/guides/BackendDeveloper.zh.md"])
    func results(path: String) throws {
        let text = try Self.text(of: path)
        for code in ResultCode.allCases { #expect(text.contains("`\(code.rawValue)`"), "\(code.rawValue)") }
    }

    @Test(
        "H1: every table of answers has the HTTP status and the retryable of its codes",
        arguments: [
            "deploy/guides/BackendDeveloper.md", "deploy/guides/BackendDeveloper.zh.md",
            "deploy/Troubleshooting.md", "deploy/Troubleshooting.zh.md",
        ])
    func answerTables(path: String) throws {
        var found: Set<ResultCode> = []
        for line in try Self.text(of: path).split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let codes = cells[0].matches(of: /`([A-Z_]+)`/).compactMap { ResultCode(rawValue: String($0.1)) }
            guard !codes.isEmpty, codes.count == cells[0].count(where: { $0 == "`" }) / 2 else { continue }
            let statuses = cells[1].matches(of: /\d{3}/).compactMap { Int($0.output) }
            let expected = codes.map(\.status)
            #expect(statuses == (Set(expected).count == 1 ? [expected[0]] : expected), "\(line)")
            #expect(codes.allSatisfy { cells[2] == "\($0.isRetryable)" }, "\(line)")
            #expect(found.isDisjoint(with: codes), "two rows of one code")
            found.formUnion(codes)
        }
        let isWhole = path.contains("BackendDeveloper")
        #expect(isWhole ? found == Set(ResultCode.allCases) : found.isSuperset(of: [.systemError, .unavailable]))
    }

    @Test("the protocol's table has every close code of a gateway")
    func closeCodes() throws {
        let rows = try Self.text(of: "Shared/Device/DeviceProtocol/DeviceProtocol.md").split(separator: "\n")
            .filter { $0.firstMatch(of: /^\| \d000–\d999 \|/) != nil }
        let cells = rows.compactMap { $0.split(separator: "|").last }
        let named = cells.flatMap { $0.matches(of: /\b(\d{4}) [a-z]/).compactMap { UInt32($0.1) } }
        #expect(Set(named).isSuperset(of: CloseCode.allCases.map(\.rawValue)))
    }

    private static func text(of path: String) throws -> String {
        let file = ProjectFolder.url.appending(path: "\(path)")
        return try String(contentsOf: file, encoding: .utf8)
    }
}
