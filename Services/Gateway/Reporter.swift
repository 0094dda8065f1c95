import AMQP
import BusMessages
import Foundation
import Logging
import Metrics
import NIOCore
import ServiceKit
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// Gathers sync points and facts of all sessions and hands them on in groups, a few times a second (reliability R6).
/// What could not be handed on is kept, merged with what came since, and tried again.
final class Reporter: Service, Sendable {
    private struct Place: Hashable {
        let channelID: Int64
        let receiver: SyncReceiver
    }

    /// How far a receiver is.
    private struct Progress {
        var upto = OplogID.zero
        /// The part of it that the device itself acknowledged or claimed.
        var acknowledged = OplogID.zero

        func united(with other: Progress) -> Progress {
            Progress(upto: max(upto, other.upto), acknowledged: max(acknowledged, other.acknowledged))
        }
    }

    /// A device's report that waits until it is durable.
    private struct Report: Sendable {
        let session: SessionHandle
        let id: UInt64
    }

    private struct State {
        var syncPoints: [Place: Progress] = [:]
        /// Re-reads that are on their devices' disks.
        var rereads: Set<Int64> = []
        var facts: [Mss_Bus_V1_Fact] = []
        /// What the broker did not take, to be handed on once more after a pause.
        var kept: [Mss_Bus_V1_Fact] = []
        var confirmed: [Mss_Bus_V1_Fact] = []
        /// Whose they are.
        var reports: [Report] = []
    }

    static let interval = Duration.milliseconds(100)
    /// How long the answer to a report waits for a frame that goes to its device anyway: then it costs no write of its
    /// own, and a device that gets much sends fewer reports.
    private static let answerDelay = TimeAmount.milliseconds(500)
    /// How long the broker is left alone with what it did not take.
    private static let pause = Duration.seconds(1)
    /// Facts of about ten seconds at the highest rate; beyond this the oldest go, and are counted.
    private static let factsMax = 200_000
    private static let factsPerBody = 500

    private let state = Mutex(State())
    private let bus: MessageBus
    private let clock: ProcessClock
    private let dropped = Counter(label: "mss_gateway_facts_dropped")
    private let handedOutCount = Counter(label: "mss_gateway_oplogs_handed_out")
    private let storedCount = Counter(label: "mss_gateway_acknowledgements", dimensions: [("of", "stored")])
    private let confirmedCount = Counter(label: "mss_gateway_acknowledgements", dimensions: [("of", "confirmed")])

    private let traces: TraceBook

    init(bus: MessageBus, clock: ProcessClock = .system, tracer: PushTracer? = nil) {
        self.bus = bus
        traces = TraceBook(tracer: tracer)
        self.clock = clock
    }

    /// Notes how far a receiver has stored a channel.
    func record(channelID: Int64, _ receiver: SyncReceiver, acknowledged: OplogID, upto: OplogID) {
        storedCount.increment()
        traces.acknowledged(channelID: channelID, deviceID: receiver.deviceID, upto: upto)
        let place = Place(channelID: channelID, receiver: receiver)
        let progress = Progress(upto: upto, acknowledged: acknowledged)
        // Another device may take over where the receiver is not a store: what is stored must be known at once.
        let isUrgent = receiver.storeID == nil && bus.isConnected
        if isUrgent { return send(place, progress) }
        state.withLock { $0.syncPoints[place] = progress.united(with: $0.syncPoints[place] ?? Progress()) }
    }

    /// Notes that a device has a re-read on its disk.
    func finishedReread(_ id: Int64) { state.withLock { _ = $0.rereads.insert(id) } }

    /// Notes that batches went out.
    func handedOut(_ batches: [GatheredBatch], to identity: SessionIdentity) {
        handedOutCount.increment(by: batches.reduce(0) { $0 + $1.oplogs.count })
        traces.handedOut(batches, to: identity)
        let now = clock.wallTime()
        note(batches.compactMap { Mss_Bus_V1_Fact(handedOut: $0, to: identity, at: now) })
    }

    /// Notes facts that nobody waits for.
    func note(_ facts: [Mss_Bus_V1_Fact]) { state.withLock { $0.facts += facts } }

    /// Notes that a rule or a threshold has passed oplogs over for a device; other actions are no such thing.
    func passedOver(_ action: SessionAction, deviceID: DeviceID, userID: UserID?) {
        var fact = Mss_Bus_V1_Fact()
        fact.atMs = clock.wallTime().milliseconds
        switch action {
        case .skipped(let ids, let reason, let channelID):
            fact.channelID = channelID
            fact.skipped.deviceID = deviceID.text
            fact.skipped.oplogIds = ids.map(\.value)
            fact.skipped.reason = Mss_Bus_V1_SkipReason(rawValue: Int(reason.rawValue)) ?? .unknown
        case .discarded(let channelID, let after, let upto):
            fact.channelID = channelID
            fact.discarded.deviceID = deviceID.text
            fact.discarded.after = after.value
            fact.discarded.upto = upto.value
        case .gaveUp(let ids, let attempts, let channelID):
            let facts = ids.map { id in
                Mss_Bus_V1_Fact.with {
                    $0.atMs = fact.atMs
                    $0.channelID = channelID
                    $0.resent.deviceID = deviceID.text
                    $0.resent.oplogID = id.value
                    $0.resent.attempts = UInt32(attempts)
                    $0.resent.dead = true
                    $0.resent.userID = userID?.text ?? ""
                }
            }
            return note(facts)
        default:
            return
        }
        note([fact])
    }

    /// Notes what an app did with oplogs. The device hears of it once that is durable; never when it is not, as it then
    /// repeats it. What no device waits for is kept here until it is durable.
    func confirmed(_ report: ConfirmedReport, of session: SessionHandle) {
        let now = clock.wallTime().milliseconds
        let deviceID = report.deviceID.text
        var facts: [Mss_Bus_V1_Fact] = []
        for (channelID, ids) in report.confirmed {
            confirmedCount.increment(by: ids.count)
            traces.confirmed(channelID: channelID, deviceID: report.deviceID, ids)
            var fact = Mss_Bus_V1_Fact()
            (fact.atMs, fact.channelID) = (now, channelID)
            var confirmed = Mss_Bus_V1_Confirmed()
            (confirmed.deviceID, confirmed.oplogIds) = (deviceID, ids)
            fact.confirmed = confirmed
            facts.append(fact)
        }
        for resent in report.resent {
            facts.append(
                .with {
                    $0.atMs = now
                    $0.channelID = resent.channelID
                    $0.resent.deviceID = deviceID
                    $0.resent.oplogID = resent.oplogID.value
                    $0.resent.attempts = UInt32(resent.attempts)
                    $0.resent.dead = resent.isDead
                    $0.resent.userID = report.userID?.text ?? ""
                })
        }
        state.withLock { [facts] state in
            if let id = report.id {
                state.confirmed += facts
                state.reports.append(Report(session: session, id: id))
            } else {
                state.facts += facts
            }
        }
    }

    func run() async throws {
        var tryAgainAt = ContinuousClock.now
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.interval) }
            flush(withKept: .now >= tryAgainAt)
            if .now >= tryAgainAt { tryAgainAt = .now + Self.pause }
        }
        flush(withKept: true)
    }

    /// Hands on what was gathered.
    ///
    /// - Parameter withKept: also what the broker did not take before.
    func flush(withKept: Bool) {
        guard bus.isConnected else { return state.withLock { trim(&$0) } }
        let gathered = state.withLock { state in
            var gathered = State()
            swap(&gathered, &state)
            if withKept {
                gathered.facts += gathered.kept
            } else {
                state.kept = gathered.kept
            }
            return gathered
        }
        bus.together {
            for (place, progress) in gathered.syncPoints { send(place, progress) }
            for id in gathered.rereads { send(reread: id) }
            for start in stride(from: 0, to: gathered.facts.count, by: Self.factsPerBody) {
                send(Array(gathered.facts[start..<min(start + Self.factsPerBody, gathered.facts.count)]))
            }
            send(confirmed: gathered.confirmed, reports: gathered.reports)
        }
    }

    private func send(confirmed facts: [Mss_Bus_V1_Fact], reports: [Report]) {
        guard !facts.isEmpty else { return answer(reports) }
        // What is not recorded has no answer: the devices repeat their reports.
        try? bus.record(facts) { [self] isRecorded in
            if isRecorded { answer(reports) }
        }
    }

    /// Devices hear of their reports, all of an event loop in one turn.
    private func answer(_ reports: [Report]) {
        SessionTurn.take(reports, on: \.session.eventLoop) { reports in
            for report in reports { report.session.handler.value.recorded(report.id) }
            reports[0].session.eventLoop.scheduleTask(in: Self.answerDelay) {
                for report in reports { report.session.handler.value.tellRecorded() }
            }
        }
    }

    private func send(_ place: Place, _ progress: Progress) {
        bus.request(.ack, as: Mss_Bus_V1_AckCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.channelID = place.channelID
                // Both empty where the channel has one sync point for its user or device.
                if let storeID = place.receiver.storeID {
                    $0.deviceID = place.receiver.deviceID.text
                    $0.storeID = storeID.text
                } else {
                    $0.storedBy = place.receiver.deviceID.text
                }
                $0.userID = place.receiver.userID?.text ?? ""
                $0.upto = progress.upto.value
                $0.acknowledged = progress.acknowledged.value
            }
        } completion: { [self] result in
            guard case .failure = result else { return }
            state.withLock { $0.syncPoints[place] = progress.united(with: $0.syncPoints[place] ?? Progress()) }
        }
    }

    private func send(reread id: Int64) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.finishReread.rereadID = id
            }
        } completion: { [self] result in
            if case .failure = result { finishedReread(id) }
        }
    }

    private func send(_ facts: [Mss_Bus_V1_Fact]) {
        let keep: @Sendable (Bool) -> Void = { [self] isRecorded in
            guard !isRecorded else { return }
            state.withLock { state in
                state.kept += facts
                trimFacts(&state)
            }
        }
        do throws(AMQPError) {
            try bus.record(facts, whenConfirmed: keep)
        } catch {
            keep(false)
        }
    }

    private func trim(_ state: inout State) {
        // Devices repeat what they confirmed.
        (state.confirmed, state.reports) = ([], [])
        trimFacts(&state)
    }

    private func trimFacts(_ state: inout State) {
        let excess = state.kept.count + state.facts.count - Self.factsMax
        guard excess > 0 else { return }
        let old = min(excess, state.kept.count)
        state.kept.removeFirst(old)
        state.facts.removeFirst(excess - old)
        dropped.increment(by: excess)
    }
}
