import Foundation
import SyncModel
import SyncStore

/// A part of a device's log, or the refusal to send it, as an operation of the component `MSS_DIAGNOSIS`
/// (DeviceProtocol.md, Operations); pure. The relay stores it itself and calls no tenant.
enum DiagnosisUpload: Hashable, Sendable {
    /// One part of the log.
    case part(DiagnosisStore.Part)
    /// The device sends no log for the task, with the reason.
    case refusal(taskID: String, run: Int, reason: String)

    /// The reasons that a device may name.
    static let reasons = ["too-large", "nothing-there", "unreadable"]

    private struct PartForm: Decodable {
        let run: Int
        let file: String
        let fileBytes: Int
        let fileSHA256: String
        let number: Int
        let total: Int
        let sha256: String
        let base64: String
    }

    private struct RefusalForm: Decodable {
        let run: Int
        let reason: String
    }

    /// Reads an operation. Its key is the task's id.
    ///
    /// - Throws: `Fault` if it is neither a part nor a refusal.
    init(_ operation: DeviceOperation) throws(Fault) {
        guard operation.children.isEmpty else { throw Fault("a diagnosis operation has no children") }
        let body = Data(operation.body)
        switch operation.name {
        case "part":
            guard let form = try? JSONDecoder().decode(PartForm.self, from: body),
                let content = Data(base64Encoded: form.base64)
            else { throw Fault("the body is not a valid part") }
            guard Self.isWithinBounds(form), !content.isEmpty else { throw Fault("a value is out of bounds") }
            self = .part(
                DiagnosisStore.Part(
                    taskID: operation.key, run: form.run, file: form.file, fileBytes: form.fileBytes,
                    fileSHA256: form.fileSHA256, number: form.number, total: form.total, sha256: form.sha256,
                    content: [UInt8](content)))
        case "refuse":
            guard let form = try? JSONDecoder().decode(RefusalForm.self, from: body),
                Self.reasons.contains(form.reason), Self.isCount(form.run)
            else { throw Fault("the body is not a valid refusal") }
            self = .refusal(taskID: operation.key, run: form.run, reason: form.reason)
        default: throw Fault("the name of a diagnosis operation is part or refuse")
        }
    }

    private static func isWithinBounds(_ form: PartForm) -> Bool {
        isCount(form.run) && (1...Limits.diagnosisParts).contains(form.total) && (1...form.total).contains(form.number)
            && isCount(form.fileBytes) && isDigest(form.fileSHA256) && isDigest(form.sha256)
            && form.file.wholeMatch(of: /[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/) != nil
    }

    private static func isCount(_ number: Int) -> Bool { (1...Int(Int32.max)).contains(number) }

    private static func isDigest(_ text: String) -> Bool { text.wholeMatch(of: /[0-9a-f]{64}/) != nil }

    /// The reason why an operation is not valid, for the device's log.
    struct Fault: Error, Hashable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }
}
