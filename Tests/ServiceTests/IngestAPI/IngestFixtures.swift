import BusMessages
import Credentials
import Logging
import ServiceKit
import SyncModel
import Synchronization

@testable import BackendCalls
@testable import IngestAPI

/// Control data of a test: one instance, one configuration of each kind, and additions of the test.
struct StubDirectory: CallerLookup {
    var isLoaded = true
    var isCurrent = true
    var instances: [InstanceID: Instance] = [:]
    var configurations: [BizType: SyncConfiguration] = [:]
    /// The control data after a request for newer data; nil: it stays.
    var later: Later?
    private var newer: Later? { later.flatMap { $0.requests.load(ordering: .relaxed) > 0 ? $0 : nil } }

    /// Additions to the control data, which a process gets by a request. Counts the requests.
    final class Later: Sendable {
        let configurations: [BizType: SyncConfiguration]
        /// An instance that is new or changed.
        let instance: Instance?
        /// Whether a writer replies.
        let isAnswered: Bool
        let requests = Atomic<Int>(0)

        init(_ configurations: SyncConfiguration..., instance: Instance? = nil, isAnswered: Bool = true) {
            self.instance = instance
            self.configurations = Dictionary(uniqueKeysWithValues: configurations.map { ($0.bizType, $0) })
            self.isAnswered = isAnswered
        }
    }

    init() {
        add(Instance(id: InstanceID("w_app"), isEnabled: true))
        add(Instance(id: InstanceID("w_off"), isEnabled: false))
        add("orders", .user)
        add("alerts", .device)
        add("news", .globalUser)
        add("offline", .user, isOnline: false)
    }

    mutating func add(_ instance: Instance) { instances[instance.id] = instance }

    mutating func add(instance id: String, isEnabled: Bool) { add(Instance(id: InstanceID(id), isEnabled: isEnabled)) }

    mutating func add(_ bizType: String, _ kind: ChannelKind, isOnline: Bool = true) {
        configurations[BizType(bizType)] = .stub(bizType, kind, isOnline: isOnline)
    }

    func instance(_ id: InstanceID) -> Instance? {
        newer?.instance?.id == id ? newer?.instance : instances[id]
    }
    func instance(ofBackendKey keyID: String) -> Instance? {
        instances.values.first { $0.keys(for: .backend).contains { $0.id == keyID } }
    }
    var someBackendKey: String { instances.values.flatMap { $0.keys(for: .backend) }.first?.id ?? "" }
    func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        newer?.configurations[bizType] ?? configurations[bizType]
    }
    func refreshed() async -> Bool {
        guard let later else { return true }
        later.requests.add(1, ordering: .relaxed)
        return later.isAnswered
    }
}

extension Instance {
    fileprivate init(id: InstanceID, isEnabled: Bool) {
        self.init(id: id, name: "test", isEnabled: isEnabled, validatorURL: "", verdictLifetime: .seconds(60))
    }
}

extension SyncConfiguration {
    static func stub(_ bizType: String, _ kind: ChannelKind, isOnline: Bool = true) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: InstanceID("w_app"), bizType: BizType(bizType), description: "", kind: kind,
            isMultiDevice: false, isPersistent: true, repush: .all, checksSession: false, isOnline: isOnline)
    }
}

/// Answers every push with one outcome and records the pushes. Stored pushes get the validity that their instance
/// permits.
final class StubSubmission: PushSubmitting {
    /// The store's time.
    static let storedAt = WallTime(milliseconds: 1_700_000_000_000)

    private let outcome: PushOutcome
    private let submitted = Mutex<[PushRequest]>([])

    init(_ outcome: PushOutcome = .stored(OplogID(7), online: true)) { self.outcome = outcome }

    var pushes: [PushRequest] { submitted.withLock { $0 } }

    func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome] {
        let requests = pushes.map(\.request)
        submitted.withLock { $0 += requests }
        return requests.map { push in
            guard case .stored(let id, let online, _) = outcome else { return outcome }
            let latest = Self.storedAt + Limits.retention
            let validity = StoredValidity(
                asked: push.validUntil, validUntil: min(push.validUntil ?? latest, latest), storedAt: Self.storedAt)
            return .stored(id, online: online, validity: validity)
        }
    }
}

extension OperationIntake {
    /// Makes an intake for backend queries over a store with these replies.
    static func stub(
        directory: StubDirectory = StubDirectory(),
        _ answer: @escaping @Sendable (Mss_Bus_V1_OperationCommand) -> Result<Mss_Bus_V1_Reply, BusError> = { _ in
            .success(.init())
        }
    ) -> OperationIntake {
        OperationIntake(directory: directory) { fill throws(BusError) in
            var command = Mss_Bus_V1_OperationCommand()
            fill(&command)
            return try answer(command).get()
        }
    }
}

extension PushQuotas {
    /// Makes quotas over a store with these replies.
    static func stub(
        now: @escaping @Sendable () -> WallTime = { WallTime(milliseconds: 1_700_000_000_000) },
        instant: (@Sendable () -> ContinuousClock.Instant)? = nil,
        _ take: @escaping @Sendable (Mss_Bus_V1_TakeQuota) -> Result<Mss_Bus_V1_QuotaReply, BusError> = { _ in
            .failure(BusError(.unanswered, "no store"))
        }
    ) -> PushQuotas {
        let start = ContinuousClock.now
        return PushQuotas(now: now, instant: instant ?? { start }) { fill throws(BusError) in
            var wish = Mss_Bus_V1_TakeQuota()
            fill(&wish)
            return try take(wish).get()
        }
    }
}

extension RequestAdmission {
    /// Makes an admission that accepts every nonce, at a fixed time.
    static func stub(
        directory: any CallerLookup = StubDirectory(),
        ring: SealingRing = KeyRing.empty.sealing(for: .backend),
        now: @escaping @Sendable () -> WallTime = { WallTime(milliseconds: 1_700_000_000_000) },
        claim: @escaping Claim = { _, _, _ in true }
    ) -> RequestAdmission {
        RequestAdmission(
            directory: directory, keys: OpenedKeys(ring: ring), claim: claim, now: now,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
}

extension PushIntake {
    /// Makes an intake over stubs.
    static func stub(
        _ submission: any PushSubmitting = StubSubmission(), directory: StubDirectory = StubDirectory(),
        inFlightMaximum: Int = 100
    ) -> PushIntake {
        PushIntake(
            directory: directory, submission: submission, operations: .stub(directory: directory),
            inFlightMaximum: inFlightMaximum)
    }
}
