import BackendCalls
import SyncModel
import SyncStore

/// What devices are told of operations (DeviceProtocol.md, Results); pure.
enum ResultPayload {
    /// UTF-16 units around the results of one oplog.
    private static let frameUnits = 14

    /// One result as JSON.
    ///
    /// - Parameter withImport: false: the state comes as an oplog of the component alone.
    static func result(_ held: DeviceOperationStore.Held, withImport: Bool) -> String {
        let isAccepted = held.outcome == .accepted
        var json = "{\"operationId\":"
        json.appendJSONString(held.operation.id)
        json.appendMember("userId", held.userID.text)
        json.appendMember("component", held.operation.component)
        json.appendMember("entityKey", held.operation.key)
        json.appendMember("operation", held.operation.name)
        json += ",\"accepted\":\(isAccepted),\"code\":\(held.code)"
        json.appendMember("level", isAccepted ? "INFO" : "ERROR")
        json.appendMember("message", held.message)
        json.appendMember("requestId", held.requestID)
        json += ",\"timestamp\":\(held.answeredAt?.milliseconds ?? 0)"
        if withImport, let imported = held.imported {
            json += ",\"import\":" + String(decoding: imported, as: UTF8.self)
        }
        return json + "}"
    }

    /// The result as it is told: with its import where that fits an oplog, and with a shorter message where even that
    /// does not.
    static func fitting(_ held: DeviceOperationStore.Held) -> String {
        let room = Limits.payloadUnits - frameUnits
        let whole = result(held, withImport: true)
        if whole.utf16.count <= room { return whole }
        let alone = result(held, withImport: false)
        if alone.utf16.count <= room { return alone }
        var short = held
        short.message = String(held.message.prefix(100))
        return result(short, withImport: false)
    }

    /// The payload with these results.
    static func payload(_ results: [String]) -> String { "{\"results\":[\(results.joined(separator: ","))]}" }

    /// How many of the first results go into one oplog, at least one.
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
