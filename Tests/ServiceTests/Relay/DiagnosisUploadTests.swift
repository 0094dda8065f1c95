import Foundation
import SyncModel
import SyncStore
import Testing

@testable import Relay

@Suite("Relay: uploads of devices' logs")
struct DiagnosisUploadTests {
    private static let digest = String(repeating: "0a", count: 32)

    private static func operation(_ name: String, _ body: String, children: Int = 0) -> DeviceOperation {
        DeviceOperation(
            id: "1", component: "MSS_DIAGNOSIS", key: "t1", name: name, body: Array(body.utf8),
            children: (0..<children).map { DeviceOperation(id: "c\($0)", component: "C", key: "k", name: "n") })
    }

    private static func part(_ changes: [String: Any] = [:]) throws -> DeviceOperation {
        var members: [String: Any] = [
            "run": 1, "file": "t1-1.log", "fileBytes": 3, "fileSHA256": digest, "number": 1, "total": 2,
            "sha256": digest, "base64": "YWI=",
        ]
        members.merge(changes) { $1 }
        let body = try JSONSerialization.data(withJSONObject: members)
        return operation("part", String(decoding: body, as: UTF8.self))
    }

    @Test("a part and a refusal are read; the key is the task")
    func reading() throws {
        guard case .part(let part) = try DiagnosisUpload(Self.part()) else { throw Wrong() }
        #expect(part.taskID == "t1" && part.run == 1 && part.content == Array("ab".utf8) && part.total == 2)
        for reason in DiagnosisUpload.reasons {
            let read = try DiagnosisUpload(Self.operation("refuse", #"{"run": 2, "reason": "\#(reason)"}"#))
            #expect(read == .refusal(taskID: "t1", run: 2, reason: reason))
        }
    }

    @Test("a value out of its bounds is refused, and never reaches the database")
    func bounds() throws {
        let wrong: [[String: Any]] = [
            ["run": 0], ["run": 5_000_000_000], ["file": "../x"], ["file": ""], ["file": "a\u{0}"],
            ["file": String(repeating: "x", count: 101)], ["fileBytes": 0], ["fileSHA256": "0a"],
            ["sha256": Self.digest.uppercased()], ["number": 0], ["number": 3], ["total": 20_001], ["base64": ""],
            ["base64": "%"], ["total": "2"],
        ]
        for change in wrong {
            let operation = try Self.part(change)
            #expect(throws: DiagnosisUpload.Fault.self, "\(change)") { try DiagnosisUpload(operation) }
        }
        for operation in [
            Self.operation("part", ""), Self.operation("part", "[]"), Self.operation("update", "{}"),
            Self.operation("refuse", #"{"run": 1, "reason": "else"}"#),
            Self.operation("refuse", #"{"run": 0, "reason": "unreadable"}"#),
            Self.operation("refuse", #"{"run": 1, "reason": "unreadable"}"#, children: 1),
        ] {
            #expect(throws: DiagnosisUpload.Fault.self) { try DiagnosisUpload(operation) }
        }
    }

    private struct Wrong: Error {}
}
