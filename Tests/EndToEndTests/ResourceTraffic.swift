import Foundation
import OfflineResources
import TestSupport

/// What it costs that ten of 1,000 cached resources changed, in bytes that TCP carried.
struct ResourceTraffic {
    /// At the backend, when a device fetches just the ten.
    let ten: Int
    /// At the backend, from the push to the end.
    let backend: Int
    /// Of the device's connection to the service meanwhile, TLS included: the push, and what is reported back.
    let service: Int
    /// Requests at the backend.
    let asked: Int

    /// All that the device has cost, against the ten.
    var ratio: Double { Double(backend + service) / Double(ten) }

    /// Has a device of the user's told that ten of its resources changed.
    static func measure(_ stack: Stack, user: String) async throws -> ResourceTraffic {
        let backend = ResourceBackend()
        let filling = String(repeating: "x", count: 500)
        for number in 0..<1_000 { backend.set("/r/\(number)", "{\"id\":\(number),\"t\":\"\(filling)\"}") }
        return try await backend.serving { port in
            try await ByteProxy.before(port) { http in
                try await ByteProxy.before(stack.gateways[0]) { service in
                    let device = try ResourceDevice(
                        stack, device: "\(user)-a", user: user, backend: http.port, gateway: service.port)
                    _ = try await device.resources.fetchCollection("/all/r")
                    let changed = (0..<10).map { "/r/\($0 * 97)" }
                    let tags = changed.map { backend.set($0, "{\"id\":1,\"t\":\"new \(filling)\"}") }
                    let other = try ResourceDevice(stack, device: "\(user)-b", user: user, backend: http.port)
                    let beforeTen = http.bytes
                    for uri in changed { _ = try await other.resources.fetchObject(uri) }
                    let ten = http.bytes - beforeTen
                    _ = backend.takeAsked()
                    var figures: ResourceTraffic?
                    try await device.running {
                        let (beforeHTTP, beforeService) = (http.bytes, service.bytes)
                        try await tell(stack, device, of: zip(changed, tags).map { (uri: $0, tag: $1) }, user: user)
                        figures = ResourceTraffic(
                            ten: ten, backend: http.bytes - beforeHTTP, service: service.bytes - beforeService,
                            asked: backend.takeAsked().count)
                    }
                    return try requireValue(figures, "nothing was measured")
                }
            }
        }
    }

    /// Pushes, and waits until all of it is fresh and the service knows that the app has the push.
    private static func tell(
        _ stack: Stack, _ device: ResourceDevice, of changes: [(uri: String, tag: String)], user: String
    ) async throws {
        let id = UUID().uuidString
        let list = changes.map {
            "{\"uri\":\"\($0.uri)\",\"action\":\"refresh\",\"etag\":\"\($0.tag.replacing("\"", with: "\\\""))\"}"
        }
        let caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
        _ = try requireValue(
            await caller.call(
                "MSS_RESOURCES", to: user, id: id, payload: "{\"resources\":[\(list.joined(separator: ","))]}"),
            "the push had no answer")
        try await eventually("the ten are fresh", within: .seconds(20)) {
            Set(device.told.changes.map(\.uri)) == Set(changes.map(\.uri))
        }
        try await eventually("the service knows that the app has it", within: .seconds(20)) {
            try await stack.tool([
                "explain", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.clientInstance,
                "--biz-type", "MSS_RESOURCES", "--id", id, "--to", user, "--device", "\(user)-a",
            ]).output.contains("DELIVERED")
        }
    }
}
