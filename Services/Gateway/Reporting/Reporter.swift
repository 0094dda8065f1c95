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

/// Merges sync points and facts of all sessions and sends them in groups, several times per second (R6). Unsent data is
/// kept, merged with newer data, and sent again.
final class Reporter: Service, Sendable {
    private struct Place: Hashable {
        let channelID: Int64
        let receiver: SyncReceiver
    }

    /// The progress of one receiver.
    private struct Progress {
        var upto = OplogID.zero
        /// The part that the device itself acknowledged or reported.
        var acknowledged = OplogID.zero

        func united(with other: Progress) -> Progress {
            Progress(upto: max(upto, other.upto), acknowledged: max(acknowledged, other.acknowledged))
        }
    }

    /// A device's report that is not durable yet.
    private struct Report: Sendable {
        let session: SessionHandle
        let id: UInt64
    }

    private struct State {
        var syncPoints: [Place: Progress] = [:]
        /// Re-reads that their devices have stored.
        var rereads: Set<Int64> = []
        var facts: [Mss_Bus_V1_Fact] = []
        /// Facts that the broker rejected; they are sent again after a pause.
        var kept: [Mss_Bus_V1_Fact] = []
        var confirmed: [Mss_Bus_V1_Fact] = []
        /// The reports of these facts.
        var reports: [Report] = []
    }

    static let interval = Duration.milliseconds(100)
    /// Time that the answer to a report waits for another frame to its device. Then the answer needs no write of its
    /// own, and a busy device sends fewer reports.
    private static let answerDelay = TimeAmount.milliseconds(500)
    /// Pause before rejected facts are sent again.
    private static let pause = Duration.seconds(1)
    /// Maximum of kept facts: about ten seconds at the highest rate. Above it, the oldest are dropped and counted.
    private static let factsMax = 200_000
    private static let factsPerBody = 500

    private let state = Mutex(State())
    private let bus: MessageBus
    private let clock: ProcessClock
    private let dropped = Counter(label: "mss_gateway_facts_dropped")
    private let handedOutCount = Counter(label: "mss_gateway_oplogs_handed_out")
    private let storedCount = Counter(label: "mss_gateway_acknowledgements", dimensions: [("of", "stored")])
    private let confirmedCount = Counter(label: "mss_gateway_acknowledgements", dimensions: [("of", "confirmed")])

    private let traces: DeviceSpanRecorder

    init(bus: MessageBus, clock: ProcessClock = .system, tracer: PushTracer? = nil) {
        self.bus = bus
        traces = DeviceSpanRecorder(tracer: tracer)
        self.clock = clock
    }

    /// Records how far a receiver has stored a channel.
    func record(channelID: Int64, _ receiver: SyncReceiver, acknowledged: OplogID, upto: OplogID) {
        storedCount.increment()
        traces.acknowledged(channelID: channelID, deviceID: receiver.deviceID, upto: upto)
        let place = Place(channelID: channelID, receiver: receiver)
        let progress = Progress(upto: upto, acknowledged: acknowledged)
        // The receiver is not one store, so another device can become the owner: it must know the sync point at once.
        let isUrgent = receiver.storeID == nil && bus.isConnected
        if isUrgent { return send(place, progress) }
        state.withLock { $0.syncPoints[place] = progress.united(with: $0.syncPoints[place] ?? Progress()) }
    }

    /// Records that a device has stored a re-read.
    func finishedReread(_ id: Int64) { state.withLock { _ = $0.rereads.insert(id) } }

    /// Records that batches were written to a device.
    func handedOut(_ batches: [OutboundBatch], to identity: SessionIdentity) {
        handedOutCount.increment(by: batches.reduce(0) { $0 + $1.oplogs.count })
        traces.handedOut(batches, to: identity)
        let now = clock.wallTime()
        enqueue(batches.compactMap { Mss_Bus_V1_Fact(handedOut: $0, to: identity, at: now) })
    }

    /// Enqueues facts without an answer.
    func enqueue(_ facts: [Mss_Bus_V1_Fact]) { state.withLock { $0.facts += facts } }

    /// Records that oplogs were skipped, discarded or given up for a device. Ignores other actions.
    func recordUndelivered(_ action: SessionAction, deviceID: DeviceID, userID: UserID?) {
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
            return enqueue(facts)
        default:
            return
        }
        enqueue([fact])
    }

    /// Records an app's confirmations. The device receives an answer when they are durable. If they are lost, the
    /// device repeats its report. Confirmations without a report id are kept here until they are durable.
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

    /// Sends the merged data.
    ///
    /// - Parameter withKept: also sends facts that the broker rejected earlier.
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
        bus.batched {
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
        // A report that is not recorded gets no answer, so the device repeats it.
        try? bus.record(facts) { [self] isRecorded in
            if isRecorded { answer(reports) }
        }
    }

    /// Answers reports, in one turn of each event loop.
    private func answer(_ reports: [Report]) {
        EventLoopBatch.execute(reports, on: \.session.eventLoop) { reports in
            for report in reports { report.session.handler.value.recorded(report.id) }
            reports[0].session.eventLoop.scheduleTask(in: Self.answerDelay) {
                for report in reports { report.session.handler.value.flushRecorded() }
            }
        }
    }

    private func send(_ place: Place, _ progress: Progress) {
        bus.request(.ack, as: Mss_Bus_V1_AckCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.channelID = place.channelID
                // Device and store are empty in a channel with one sync point for its user or device.
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
        let requeue: @Sendable (Bool) -> Void = { [self] isRecorded in
            guard !isRecorded else { return }
            state.withLock { state in
                state.kept += facts
                trimFacts(&state)
            }
        }
        do throws(AMQPError) {
            try bus.record(facts, whenConfirmed: requeue)
        } catch {
            requeue(false)
        }
    }

    private func trim(_ state: inout State) {
        // Devices repeat unanswered reports.
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
