import Foundation
import OfflineResources
import TestSupport

/// The traffic when ten of 1,000 cached resources changed, in bytes that TCP carried.
struct ResourceTraffic {
    /// Bytes at the backend when a device fetches only the ten resources.
    let ten: Int
    /// Bytes at the backend from the push to the end.
    let backend: Int
    /// Bytes on the device's connection to the service in the same time, TLS included: the push, and the device's
    /// reports.
    let service: Int
    /// The number of requests at the backend.
    let asked: Int

    /// All traffic of the device, relative to `ten`.
    var ratio: Double { Double(backend + service) / Double(ten) }

    /// Measures the traffic of a device while it is notified that ten of its resources changed.
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
                    _ = backend.drainRequests()
                    var figures: ResourceTraffic?
                    try await device.running {
                        let (beforeHTTP, beforeService) = (http.bytes, service.bytes)
                        try await pushChanges(
                            stack, device, of: zip(changed, tags).map { (uri: $0, tag: $1) }, user: user)
                        figures = ResourceTraffic(
                            ten: ten, backend: http.bytes - beforeHTTP, service: service.bytes - beforeService,
                            asked: backend.drainRequests().count)
                    }
                    return try requireValue(figures, "nothing was measured")
                }
            }
        }
    }

    /// Pushes, and waits until all resources are fresh and the service knows that the app has the push.
    private static func pushChanges(
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
