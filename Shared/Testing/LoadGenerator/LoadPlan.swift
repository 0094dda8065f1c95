import Credentials
import MobileSync
import ServiceKit
import SyncModel

/// The load of one process: a scenario and its target.
struct LoadPlan: Sendable {
    /// One process's part of the users. Several processes together can have more devices than one process can open
    /// files.
    struct Part: Hashable, Sendable, Codable {
        /// Number of the part, from 1.
        var number = 1
        var of = 1

        /// This part's share of a number. The first parts receive the remainder.
        func share(of total: Int) -> Int { total / of + (number <= total % of ? 1 : 0) }
    }

    /// The scenario, with this part's share of the users and of the rates.
    var scenario: LoadScenario
    var part = Part()
    var instance: String
    /// Distinguishes users and thirdMsgIds of this run from those of other runs.
    var run: String
    /// Signs the pushes. The value is nil if they are unsigned.
    var signer: RequestSigner?
    /// Signs `Connect` frames. The value is nil if they are unsigned.
    var connectSigner: ConnectSigner?

    /// - Parameter scenario: the scenario of all parts together.
    init(
        scenario: LoadScenario, part: Part, instance: String, run: String, signer: RequestSigner? = nil,
        connectSigner: ConnectSigner? = nil
    ) {
        self.scenario = scenario
        self.part = part
        self.instance = instance
        self.run = run
        self.signer = signer
        self.connectSigner = connectSigner
        guard part.of > 1 else { return }
        self.scenario.users = max(1, part.share(of: scenario.users))
        for step in scenario.steps.indices {
            self.scenario.steps[step].parts = scenario.steps[step].parts.map(share)
        }
    }

    private func share(_ whole: LoadStep.Part) -> LoadStep.Part {
        switch whole {
        case .push(var stream):
            switch stream.pace {
            case .rate(let perSecond, let seconds):
                stream.pace = .rate(perSecond: max(1, part.share(of: perSecond)), seconds: seconds)
            case .window(let size, let seconds): stream.pace = .window(max(1, part.share(of: size)), seconds: seconds)
            case .each, .times: break
            }
            stream.users = stream.users.map { max(1, part.share(of: $0)) }
            return .push(stream)
        case .reconnect(let perSecond, let seconds):
            return .reconnect(perSecond: max(1, part.share(of: perSecond)), seconds: seconds)
        case .operate(var stream):
            stream.perSecond = max(1, part.share(of: stream.perSecond))
            return .operate(stream)
        case .connect, .disconnect, .idle: return whole
        }
    }

    /// Prefix of all user ids.
    var userPrefix: String { "load-\(run)-" }

    /// Number of a user in the whole run.
    func userNumber(_ local: Int) -> Int { local * part.of + part.number - 1 }

    /// The user id of a device.
    func user(ofDevice device: Int) -> String {
        CallTemplate.user(userNumber(device / scenario.devicesPerUser), prefix: userPrefix)
    }

    /// Delay of the device before it reads and acknowledges, in milliseconds.
    func lateness(ofDevice device: Int) -> Int {
        guard let slow = scenario.slow, device % 100 < slow.percent else { return 0 }
        return slow.milliseconds
    }

    /// The user for a push, by its index in the stream. The stride spreads consecutive pushes over the users.
    func user(of index: Int, in stream: PushStream) -> Int {
        if case .each(let count) = stream.pace { return index / count }
        return (index &* 7_919) % (stream.users ?? scenario.users)
    }
}
