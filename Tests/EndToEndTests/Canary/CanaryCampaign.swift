import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import TestSupport

/// Two instances with users and devices of the same names, callers that push to all of them, and devices that change
/// users, sessions and gateways all the time. No push may reach another receiver or a session that has ended.
final class CanaryCampaign: Sendable {
    /// Counts of events, which show that the run has tested something.
    struct Tally {
        var pushes = 0
        var binds = 0
        var takeovers = 0
        var endedSessions = 0
        var revocations = 0
        var received = CanaryJudge.Tally()
    }

    static let instances = ["canary_a", "canary_b"]
    static let users = (0..<12).map { "user-\($0)" }
    /// The checked Sync IDs and their verdict lifetimes.
    static let lifetimes: [String: Duration] = [
        "TRADE-SECURE": .seconds(8), "TRADE-SINGLE": .seconds(8), "TRADE-LIVE": .seconds(8),
        "TRADE-SHORT": .seconds(1), "TRADE-NOW": .zero,
    ]
    /// The Sync IDs for users, checked and unchecked.
    static let userTypes = ["CHAT"] + lifetimes.keys.sorted()
    /// Every Sync ID.
    static let bizTypes = userTypes + ["LOCK", "NEWS"]
    /// The longest extension of a run that has not received data of every Sync ID. On a slow machine few binds last
    /// long enough for a push that is not persistent.
    private static let extensionMax = Duration.seconds(120)

    let stack: Stack
    let tenant = CanaryTenant()
    private let counts = Mutex(Tally())
    private let found = Mutex<[String]>([])
    private let ends = Mutex(false)
    private let numbers = Mutex(0)
    /// The newest bind of each connection that a device has.
    private let present = Mutex<[String: CanaryConnection]>([:])

    init(_ stack: Stack) { self.stack = stack }

    /// The first faults, as text.
    var faults: [String] { found.withLock { $0 } }

    var tally: Tally { counts.withLock { $0 } }

    /// The Sync IDs of which no data came. A connection counts when it has ended.
    var missingTypes: [String] {
        let received = tally.received.entriesOfType
        return Self.bizTypes.filter { received[$0, default: 0] == 0 }
    }

    /// Whether devices and callers must stop.
    var isOver: Bool { ends.withLock { $0 } }

    func count(_ change: (inout Tally) -> Void) { counts.withLock { change(&$0) } }

    func report(_ faults: [String]) {
        guard !faults.isEmpty else { return }
        found.withLock { if $0.count < 100 { $0 += faults } }
    }

    /// Records that a device has sent another bind.
    func recordBind(_ visit: CanaryConnection) { present.withLock { $0["\(visit.instance) \(visit.device)"] = visit } }

    /// The connections that are bound to the user, or that have sent a bind for the user.
    func visits(of user: String, in instance: String) -> [CanaryConnection] {
        present.withLock { $0.values.filter { $0.user == user && $0.instance == instance } }
    }

    /// A number that is new in this run.
    func next() -> Int {
        numbers.withLock { number in
            number += 1
            return number
        }
    }

    /// Runs until the devices have made this number of binds, the duration is over and data of every Sync ID came, if
    /// it comes within the longest extension.
    func run(devices: Int, binds: Int, atLeast duration: Duration) async throws {
        try await tenant.start(port: stack.canaryTenantPort)
        try await setUp()
        let deadline = ContinuousClock.now + duration
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<devices {
                let device = CanaryDevice(
                    self, instance: Self.instances[number % 2], name: "device-\(number / 2)")
                group.addTask { await device.run() }
            }
            for caller in 0..<4 { group.addTask { await self.push(caller: caller) } }
            group.addTask {
                while ContinuousClock.now < deadline || self.tally.binds < binds
                    || ContinuousClock.now < deadline + Self.extensionMax && !self.missingTypes.isEmpty,
                    self.faults.isEmpty
                {
                    try await ContinuousClock().sleep(for: .milliseconds(200))
                }
                self.ends.withLock { $0 = true }
            }
            try await group.waitForAll()
        }
        try await tenant.stop()
    }

    private func setUp() async throws {
        var configurations = ["CHAT": #""scope": "appointed", "target": "user", "repush": "all""#]
        configurations["LOCK"] = #""scope": "appointed", "target": "device", "repush": "all""#
        configurations["NEWS"] = #""scope": "global", "target": "device", "repush": 10, "immediate": true"#
        for (bizType, lifetime) in Self.lifetimes {
            configurations[bizType] =
                #""scope": "appointed", "target": "user", "repush": 100, "checkSession": true,"#
                + #" "multiDevice": \#(bizType != "TRADE-SINGLE"), "persistent": \#(bizType != "TRADE-LIVE"),"#
                + #" "verdictLifetimeSeconds": \#(lifetime.components.seconds)"#
        }
        let instances = Self.instances.map {
            """
            {"instanceId": "\($0)", "validatorUrl": "http://127.0.0.1:\(stack.canaryTenantPort)/",
              "verdictLifetimeSeconds": 8}
            """
        }
        let entries = Self.instances.flatMap { instance in
            configurations.map { #"{"instanceId": "\#(instance)", "bizType": "\#($0)", "description": "", \#($1)}"# }
        }
        let file = stack.folder.appending(path: "canary.json")
        try
            #"{"instances": [\#(instances.joined(separator: ","))], "configurations": [\#(entries.joined(separator: ","))]}"#
            .write(to: file, atomically: true, encoding: .utf8)
        let outcome = try await stack.tool(["apply", file.path])
        guard outcome.status == 0 else { throw Failure(outcome.output) }
    }

    /// Pushes to random receivers, each payload with its audience, until the run is over.
    private func push(caller: Int) async {
        while !isOver {
            let number = next()
            let instance = Self.instances[Int.random(in: 0...1)]
            let caller = Caller(apis: stack.apis, instance: instance)
            let (bizType, audience, target): (String, CanaryPayload.Audience, String?)
            switch Int.random(in: 0..<100) {
            case 0: (bizType, audience, target) = ("NEWS", .everybody, nil)
            case 1..<10:
                let device = "device-\(Int.random(in: 0..<20))"
                (bizType, audience, target) = ("LOCK", .device(device), device)
            default:
                let user = Self.users[Int.random(in: Self.users.indices)]
                let type = Self.userTypes[Int.random(in: Self.userTypes.indices)]
                (bizType, audience, target) = (type, .user(user), user)
            }
            let payload = CanaryPayload(instance: instance, audience: audience, number: number)
            let answer = await caller.call(bizType, to: target, id: "c\(number)", payload: payload.text, api: number)
            if answer?.success == true { count { $0.pushes += 1 } }
            try? await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 10...80)))
        }
    }

    /// Revokes one session of a user, or with nil all sessions, through the API. Returns whether the service answered
    /// success.
    func revoke(_ session: String?, of user: String, in instance: String) async -> Bool {
        struct Answer: Decodable { let success: Bool }
        let api = stack.apis[Int.random(in: stack.apis.indices)]
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(api)/webapi/session/revoke?instanceId=\(instance)")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        var members = ["userId": user]
        members["sessionId"] = session
        guard let body = try? JSONEncoder().encode(members) else { return false }
        request.body = .bytes(ByteBuffer(bytes: body))
        guard let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(10)),
            let bytes = try? await response.body.collect(upTo: 65_536),
            let answer = try? JSONDecoder().decode(Answer.self, from: Data(bytes.readableBytesView))
        else { return false }
        return answer.success
    }
}
