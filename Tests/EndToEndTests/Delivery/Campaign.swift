import Foundation
import MobileSync
import Synchronization
import TestSupport

/// Callers push to users while their devices connect and disconnect at random. Then the results are compared.
final class Campaign: Sendable {
    /// One push that was answered with success.
    struct Pushed: Hashable, Sendable {
        let user: String
        let oplogID: Int64
        let payload: String
    }

    /// The least number of pushes.
    static let pushes = TestGear.count(2_000, soak: 10_000)
    private static let users = TestGear.count(30, soak: 100)
    private static let callers = TestGear.count(8, soak: 32)

    private let stack: Stack
    private let name: String
    private let devices: [TestDevice]
    private let pushed: Mutex<[[Pushed]]>
    /// Errors of devices that ended early.
    private let endings = Mutex<[String]>([])
    private let areCallersDone = Mutex(false)

    /// - Parameter name: the start of the names of users and devices.
    init(_ stack: Stack, name: String) {
        self.stack = stack
        self.name = name
        devices = (0..<Self.users).map { TestDevice(stack, user: "\(name)-u\($0)", device: "\(name)-d\($0)") }
        pushed = Mutex(Array(repeating: [], count: Self.callers))
    }

    /// The number of pushes that were answered with success.
    var count: Int { pushed.withLock { $0.reduce(0) { $0 + $1.count } } }

    /// Runs callers and devices. The callers stop when there are enough pushes and `meanwhile` has returned.
    func run(meanwhile: @escaping @Sendable () async throws -> Void = {}) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices { group.addTask { try await self.comeAndGo(device) } }
            try await Callers(count: Self.callers).run(meanwhile: meanwhile) { caller, number in
                try await self.push(caller: caller, number: number)
                return self.count >= Self.pushes
            }
            areCallersDone.withLock { $0 = true }
            let expected = Dictionary(grouping: pushed.withLock { $0.flatMap(\.self) }, by: \.user)
            // `faults()` reports each oplog that is still missing after this time.
            try? await eventually("every device has every push of its user", within: .seconds(60)) {
                self.devices.allSatisfy { $0.received.count >= expected[$0.user]?.count ?? 0 }
            }
            group.cancelAll()
        }
    }

    private func push(caller: Int, number: Int) async throws {
        let user = devices[Int.random(in: devices.indices)].user
        let payload = "\(caller):\(number)"
        let answer = try await Caller(apis: stack.apis).push(
            "UCHAT", to: user, id: "\(name)-\(payload)", payload: payload, first: caller)
        let id = try requireValue(answer.oplogId, "an answer with success has an oplogId")
        pushed.withLock { $0[caller].append(Pushed(user: user, oplogID: id, payload: payload)) }
    }

    /// Makes short connections to either gateway while callers push, then stays connected.
    private func comeAndGo(_ device: TestDevice) async throws {
        do {
            try await visits(of: device)
        } catch  where !(error is CancellationError) && !Task.isCancelled {
            endings.withLock { $0.append("\(device.device) stopped: \(error)") }
        }
    }

    private func visits(of device: TestDevice) async throws {
        while !areCallersDone.withLock({ $0 }) {
            try await device.visit(gateway: .random(in: 0...1), for: .milliseconds(Int.random(in: 200...3_000)))
            try await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 0...300)))
        }
        while true {
            try await device.visit(gateway: .random(in: 0...1), for: .seconds(30))
        }
    }

    /// The faults as text; empty when every promise held.
    func faults() -> [String] {
        let all = pushed.withLock { $0 }
        var faults = endings.withLock { $0 }
        for (caller, own) in all.enumerated() {
            for (user, pushes) in Dictionary(grouping: own, by: \.user)
            where pushes.map(\.oplogID) != pushes.map(\.oplogID).sorted() {
                faults.append("caller \(caller): ids of \(user) do not rise in call order")
            }
        }
        let expected = Dictionary(grouping: all.flatMap(\.self), by: \.user)
        for device in devices {
            let received = device.received
            let ids = received.map(\.oplogID)
            if ids != ids.sorted() { faults.append("\(device.device): out of order") }
            if Set(ids).count != ids.count { faults.append("\(device.device): \(ids.count - Set(ids).count) twice") }
            let seen = Set(received.map { Pushed(user: $0.userID ?? "", oplogID: $0.oplogID, payload: $0.text ?? "") })
            let missing = Set(expected[device.user] ?? []).subtracting(seen)
            let strange = seen.subtracting(expected[device.user] ?? [])
            if !missing.isEmpty {
                faults.append(
                    "\(device.device): \(missing.count) missing, first \(missing.first.map { "\($0)" } ?? "")")
            }
            if !strange.isEmpty {
                faults.append(
                    "\(device.device): \(strange.count) that no caller was told of, first \(strange.first.map { "\($0)" } ?? "")"
                )
            }
        }
        return faults
    }
}
