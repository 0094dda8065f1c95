import Foundation
import TestSupport
import Testing

/// Steps that tests of delivery rules share.
///
/// A later push of another Sync ID, the marker, shows that an earlier push is not delivered.
protocol RuleSuite {
    var stack: Stack { get }
    var caller: Caller { get }
}

extension RuleSuite {
    /// Pushes to UCHAT and waits until the device's app has it.
    func mark(_ device: TestDevice) async throws {
        let id = UUID().uuidString
        _ = try await caller.push("UCHAT", to: device.user, id: id, payload: id)
        try await eventually("the marker reaches \(device.device)", within: .seconds(10)) {
            device.payloads("UCHAT").contains(id)
        }
    }

    /// Waits until the device's app has received exactly these payloads.
    func shows(_ device: TestDevice, _ bizType: String, _ payloads: [String]) async throws {
        try await eventually(
            "\(device.device) shows \(payloads), not \(device.payloads(bizType))", within: .seconds(10)
        ) { device.payloads(bizType) == payloads }
    }

    /// Pushes each payload under an id that consists of target and payload.
    func push(
        _ bizType: String, to target: String?, _ payloads: [String], more: [String: String] = [:],
        expecting message: String
    ) async throws {
        if message == "NOT_ONLINE", let target { await hasLeft(target) }
        for payload in payloads {
            let id = "\(target ?? "all")-\(payload)"
            let answer = await caller.call(bizType, to: target, id: id, payload: payload, more: more)
            #expect(answer?.msg == message, "\(payload): \(answer?.detail ?? "")")
        }
    }

    /// Waits until no session of a user or device is registered, if there will be none. A client's connection ends a
    /// moment before that.
    private func hasLeft(_ target: String) async {
        try? await eventually("\(target) has left", within: .milliseconds(700)) {
            try await stack.ask(
                "SELECT count(*) FROM delivery.device_session WHERE '\(target)' IN (user_id, device_id)") == "0"
        }
    }

    /// Changes a configuration. The tool returns when the change is in force everywhere.
    func configure(_ arguments: String...) async throws {
        let bizType = arguments[1]
        let outcome = try await stack.tool(
            ["config", arguments[0], bizType, "--instance", caller.instance] + arguments.dropFirst(2))
        guard outcome.status == 0 else { throw Failure(outcome.output) }
    }

    /// The output of `mssctl explain` for a push.
    func explain(_ bizType: String, to target: String?, id: String, device: String? = nil) async throws -> String {
        var arguments = [
            "explain", "--api", "http://127.0.0.1:\(stack.apis[1])", "--instance", caller.instance, "--biz-type",
            bizType, "--id", id,
        ]
        if let target { arguments += ["--to", target] }
        if let device { arguments += ["--device", device] }
        return try await stack.tool(arguments).output
    }

    /// Waits until the tool's explanation of a push contains these words, because its records are written a moment
    /// later.
    func explains(
        _ bizType: String, to target: String?, id: String, device: String? = nil, _ words: String...
    ) async throws {
        var said = ""
        do {
            try await eventually("", within: .seconds(15)) {
                said = try await explain(bizType, to: target, id: id, device: device)
                return words.allSatisfy { said.contains($0) }
            }
        } catch {
            throw Failure("explain of \(id) lacks one of \(words): \(said)")
        }
    }
}
