import Credentials
import MobileSync
import ServiceKit
import SyncModel

/// What one process of a load run does: a scenario, and where.
struct LoadPlan: Sendable {
    /// A process's share of the users, so that several can hold more devices than one may open files.
    struct Part: Hashable, Sendable, Codable {
        /// From 1.
        var number = 1
        var of = 1

        /// This part's share of a number; the first ones take what is left over.
        func share(of total: Int) -> Int { total / of + (number <= total % of ? 1 : 0) }
    }

    /// With this part's share of the users and of the rates.
    var scenario: LoadScenario
    var part = Part()
    var instance: String
    /// Distinguishes this run's users and thirdMsgIds from those of other runs.
    var run: String
    /// Signs the pushes; nil: they are not signed.
    var signer: RequestSigner?
    /// Signs the devices' connects; nil: they are not signed.
    var connectSigner: ConnectSigner?

    /// - Parameter scenario: the whole.
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

    /// What all names of users begin with.
    var userPrefix: String { "load-\(run)-" }

    /// A user's number in the whole run.
    func userNumber(_ local: Int) -> Int { local * part.of + part.number - 1 }

    /// The device's user, as its connects name it.
    func user(ofDevice device: Int) -> String {
        CallTemplate.user(userNumber(device / scenario.devicesPerUser), prefix: userPrefix)
    }

    /// How long the device waits before it reads and acknowledges, in milliseconds.
    func lateness(ofDevice device: Int) -> Int {
        guard let slow = scenario.slow, device % 100 < slow.percent else { return 0 }
        return slow.milliseconds
    }

    /// Whom a stream's push goes to, by its place in the stream; a stride that is prime to most counts spreads
    /// neighbours in time.
    func user(of index: Int, in stream: PushStream) -> Int {
        if case .each(let count) = stream.pace { return index / count }
        return (index &* 7_919) % (stream.users ?? scenario.users)
    }
}
