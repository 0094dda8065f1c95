import Foundation

/// Reads the service's results of operations from an oplog of the Sync ID MSS_RESULTS (`DeviceProtocol.md`, Results).
enum ResultPayload {
    /// One result, and the user of its operation if the service names the user.
    struct Entry: Hashable {
        let result: SyncOperationResult
        let userID: String?
    }

    /// Returns the results in a payload, without invalid ones.
    static func results(in payload: [UInt8]) -> [Entry] {
        guard let list = JSONSlices.members(of: payload)?["results"], let elements = JSONSlices.elements(of: list)
        else { return [] }
        return elements.compactMap(entry)
    }

    private static func entry(_ bytes: [UInt8]) -> Entry? {
        guard let members = JSONSlices.members(of: bytes), let id = JSONSlices.text(members["operationId"]),
            !id.isEmpty
        else { return nil }
        func text(_ name: String) -> String { JSONSlices.text(members[name]) ?? "" }
        func number(_ name: String) -> Int64? {
            members[name].flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
        }
        let isAccepted = members["accepted"].map { $0.elementsEqual("true".utf8) } ?? false
        let result = SyncOperationResult(
            operationID: id, component: text("component"), key: text("entityKey"), name: text("operation"),
            isAccepted: isAccepted, code: Int(clamping: number("code") ?? (isAccepted ? 200 : 500)),
            level: JSONSlices.text(members["level"]) ?? (isAccepted ? "INFO" : "ERROR"), message: text("message"),
            requestID: text("requestId"), at: Date(milliseconds: number("timestamp") ?? 0),
            imported: members["import"].flatMap { $0.elementsEqual("null".utf8) ? nil : $0 })
        return Entry(result: result, userID: JSONSlices.text(members["userId"]))
    }
}
