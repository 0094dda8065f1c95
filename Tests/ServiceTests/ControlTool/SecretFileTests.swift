import Foundation
import Testing
import ToolSupport

@testable import ControlTool

@Suite("Secrets that the tool reads from files") struct SecretFileTests {
    /// Runs the body with the path of a file of these bytes.
    private func with<Value>(_ bytes: [UInt8], _ body: (String) throws -> Value) throws -> Value {
        let file = URL(filePath: NSTemporaryDirectory()).appending(path: "secret-\(UUID().uuidString)")
        try Data(bytes).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try body(file.path)
    }

    @Test("H7: a session that is not UTF-8 is refused: another text would be another session")
    func notText() throws {
        for bytes: [UInt8] in [[0x73, 0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80]] {
            #expect(throws: (any Error).self) { try with(bytes, RevokeCommand.session) }
        }
        #expect(throws: (any Error).self) { try with([0x0A], RevokeCommand.session) }
        #expect(throws: (any Error).self) { try RevokeCommand.session(in: "/none") }
    }

    @Test("H7: only line ends around a session are removed; all its other bytes count")
    func exact() throws {
        for session in [" s 1 ", "\t", "é", "e\u{301}", "\u{FEFF}s", "a\u{0}b"] {
            let read = try with(Array((session + "\r\n").utf8), RevokeCommand.session)
            #expect(Array(read.utf8) == Array(session.utf8))
        }
    }

    @Test("All white space around a Base64 secret is removed")
    func base64() throws {
        #expect(try with(Array(" AAE= \n".utf8)) { try SecretFile.text(of: $0) } == "AAE=")
    }
}
