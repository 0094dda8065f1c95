import DeviceProtocol
import SwiftProtobuf

/// The send window, the size of frames, and a device that stops reading.
enum GatewayFlowCases {
    private static let rule = "Framing"

    static let all: [GatewayCase] = [
        GatewayCase("flow/window", rule, window),
        GatewayCase("flow/frame-size", rule, frameSize),
        GatewayCase("flow/half-open", rule, halfOpen),
    ]

    private static func window(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.pushFillers(300, to: identity.user)
        let device = try await target.open(identity)
        let held = try await heldBack(device)
        let payloads = device.batches.map { $0.entries.reduce(0) { $0 + $1.payload.count } }
        // The gateway pauses when the window is full. The batch that fills the window can exceed it.
        let before = payloads.reduce(0, +) - (payloads.last ?? 0)
        try Mismatch.unless(
            before < 256 * 1_024, "at most 256 KiB and one batch without an acknowledgement",
            seen: "\(payloads.reduce(0, +)) bytes in batches of \(payloads)")
        try Mismatch.unless(held < ids.count, "a pause before the end", seen: "all \(held) oplogs")
        let ledger = try await device.drain(upto: ids[299])
        try Mismatch.unless(ledger.ids == ids, "300 oplogs, each once", seen: "\(ledger.ids.count)")
        try await device.expectCaughtUp()
    }

    /// Number of oplogs that arrived before the gateway paused.
    private static func heldBack(_ device: ScriptedDevice) async throws -> Int {
        var seen = -1
        while true {
            let now = device.batches.reduce(0) { $0 + $1.entries.count }
            if now == seen, now > 0 { return now }
            seen = now
            try await device.connection.linger(.seconds(1))
        }
    }

    private static func frameSize(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let ids = try await target.api.pushFillers(60, to: identity.user)
        let device = try await target.open(identity)
        _ = try await device.drain(upto: ids[59])
        for packet in device.connection.packets {
            let bytes = FrameBytes.of([packet]).count - 4
            try Mismatch.unless(bytes <= 1_048_576, "frames of at most 1 MiB", seen: "\(bytes) bytes")
            try Mismatch.unless(
                bytes <= 65_536 || packet.push.batches.count == 1, "push frames that end at 64 KiB",
                seen: "\(bytes) bytes with \(packet.push.batches.count) batches")
        }
    }

    private static func halfOpen(_ target: GatewayTarget) async throws {
        let (stuck, well) = (target.fresh(), target.fresh())
        let ids = try await target.api.pushFillers(200, to: stuck.user)
        let deaf = try await target.open(stuck)
        try await deaf.connection.setReading(false)
        let healthy = try await target.open(well)
        try await healthy.expectCaughtUp()
        for number in 0..<5 {
            let id = try await target.api.push(["\(number)"], to: well.user)
            _ = try await healthy.expect(upto: id[0], within: .seconds(3))
        }
        try await deaf.connection.setReading(true)
        let ledger = try await deaf.drain(upto: ids[199])
        try Mismatch.unless(ledger.ids == ids, "200 oplogs, each once", seen: "\(ledger.ids.count)")
    }
}
