import ServiceKit
import SyncModel
import SyncStore

/// The payload that gives a device the results of its operations (DeviceProtocol.md, Results); pure.
enum ResultPayload {
    /// UTF-16 units around the results of one oplog.
    private static let frameUnits = 14
    /// UTF-16 units of one result.
    private static let capacity = Limits.payloadUnits - frameUnits

    /// One result as JSON.
    ///
    /// - Parameter withImport: false: without the new state, which the device then gets only as an oplog of the
    ///   component.
    static func result(_ stored: DeviceOperationStore.StoredOperation, withImport: Bool) -> String {
        let isAccepted = stored.outcome == .accepted
        var json = "{\"operationId\":"
        json.appendJSONString(stored.operation.id)
        json.appendMember("userId", stored.userID.text)
        json.appendMember("component", stored.operation.component)
        json.appendMember("entityKey", stored.operation.key)
        json.appendMember("operation", stored.operation.name)
        json += ",\"accepted\":\(isAccepted),\"code\":\(stored.code)"
        json.appendMember("level", isAccepted ? "INFO" : "ERROR")
        json.appendMember("message", stored.message)
        json.appendMember("requestId", stored.requestID)
        json += ",\"timestamp\":\(stored.answeredAt?.milliseconds ?? 0)"
        if withImport, let imported = stored.imported {
            json += ",\"import\":" + String(decoding: imported, as: UTF8.self)
        }
        return json + "}"
    }

    /// Whether the result can be sent with the new state.
    static func fitsWithImport(_ stored: DeviceOperationStore.StoredOperation) -> Bool {
        result(stored, withImport: true).utf16.count <= capacity
    }

    /// The result as it is sent: with the new state if that fits an oplog, and with a shorter message if the result
    /// does not fit even without it.
    static func fitting(_ stored: DeviceOperationStore.StoredOperation) -> String {
        let whole = result(stored, withImport: true)
        if whole.utf16.count <= capacity { return whole }
        let alone = result(stored, withImport: false)
        if alone.utf16.count <= capacity { return alone }
        var short = stored
        short.message = String(stored.message.prefix(100))
        return result(short, withImport: false)
    }

    /// The payload with these results.
    static func payload(_ results: [String]) -> String { "{\"results\":[\(results.joined(separator: ","))]}" }

    /// The number of results from the first on that fit one oplog; at least one.
    static func count(fitting results: some Sequence<String>) -> Int {
        var (count, units) = (0, frameUnits)
        for result in results {
            units += result.utf16.count + 1
            guard count == 0 || units <= Limits.payloadUnits else { break }
            count += 1
        }
        return count
    }
}
