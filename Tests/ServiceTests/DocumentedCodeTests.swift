import DeviceProtocol
import Foundation
import SyncModel
import Testing

@Suite("The codes that are documented are those that there are")
struct DocumentedCodeTests {
    @Test(
        "every result code stands in the backend developer's guide",
        arguments: ["deploy/guides/BackendDeveloper.md", "deploy/guides/BackendDeveloper.zh.md"])
    func results(path: String) throws {
        let text = try Self.text(of: path)
        for code in ResultCode.allCases { #expect(text.contains("`\(code.rawValue)`"), "\(code.rawValue)") }
    }

    @Test("the protocol's table of close codes has every code that a gateway gives")
    func closeCodes() throws {
        let rows = try Self.text(of: "Shared/DeviceProtocol/DeviceProtocol.md").split(separator: "\n")
            .filter { $0.firstMatch(of: /^\| \d000–\d999 \|/) != nil }
        let cells = rows.compactMap { $0.split(separator: "|").last }
        let named = cells.flatMap { $0.matches(of: /\b(\d{4}) [a-z]/).compactMap { UInt32($0.1) } }
        #expect(Set(named).isSuperset(of: CloseCode.allCases.map(\.rawValue)))
    }

    private static func text(of path: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).appending(path: "../../../\(path)").standardized
        return try String(contentsOf: file, encoding: .utf8)
    }
}
