import SyncModel

/// Compares what answers say of the presence of devices with the times in which devices held open sessions, as their
/// clients saw them (spec H4, reliability I9).
///
/// An answer is judged only where the sessions cannot have been lost without a client's noticing: no fault that can do
/// that was at work in the whole call or in the `settling` time before it. Nothing else is tolerated.
package struct PresenceChecker: Sendable {
    private struct Session: Sendable {
        let audiences: [HistoryTarget]
        /// Nil: the client has no open session.
        var openedAt: Duration?
    }

    private struct Call: Sendable {
        let target: HistoryTarget
        let isShared: Bool
        let at: Duration
        /// Devices whose sessions were open and settled at the beginning, and since when.
        let present: [String: Duration]
    }

    /// How far sessions of an audience may be on record although no device of it is there.
    private struct Absence: Sendable {
        /// Since when no app of the audience has run.
        let since: Duration
        /// The gateways have seen the connections end.
        let isClean: Bool
    }

    /// After a heal, until leases and sessions are on record again: a lease lasts 6 s, and the gateway then registers
    /// its sessions anew. After an opening, until the registration cannot be overtaken any more.
    package static let settling = Duration.seconds(10)
    /// In which live data must have reached an app whose session stayed open.
    package static let longestDelivery = Duration.seconds(30)
    /// For so long after an answer NOT_ONLINE a session must still be open: a client may notice its end late.
    package static let noticing = Duration.seconds(3)
    private static let mostFaults = 200

    package private(set) var faults: [HistoryFault] = []
    package private(set) var faultCount = 0
    /// Answers that were judged.
    package private(set) var judged = 0
    private var sessions: [String: Session] = [:]
    private var running: [HistoryTarget: Set<String>] = [:]
    private var absences: [HistoryTarget: Absence] = [:]
    private var calls: [String: Call] = [:]
    /// Since when no disturbing fault is at work; nil: one is.
    private var calmSince: Duration? = .zero - settling
    /// Live pushes that devices must be given, by push and device.
    private var expected: [String: (devices: Set<String>, until: Duration)] = [:]
    private var givenEarly: [String: Set<String>] = [:]
    /// Answers NOT_ONLINE that are wrong if the session of the device goes on.
    private var suspected: [(push: String, device: String, until: Duration)] = []

    package init() {}

    /// Takes what happened.
    ///
    /// - Parameter time: since the run's beginning.
    package mutating func observe(_ event: PresenceEvent, at time: Duration) {
        check(at: time)
        switch event {
        case .arrived(let device, let instance, let user): arrive(device, instance, user)
        case .opened(let device): sessions[device]?.openedAt = time
        case .lost(let device): close(device)
        case .left(let device): leave(device, time)
        case .disturbed:
            calmSince = nil
            expected = [:]
        case .healed: calmSince = time
        case .called(let push, let target, let isShared): call(push, target, isShared, time)
        case .answered(let push, let answer): judge(push, answer, time)
        case .given(let push, let device): give(push, device)
        }
    }

    /// Looks for answers that have turned out wrong, and for live pushes that did not come in time.
    package mutating func check(at time: Duration) {
        while let first = suspected.first, first.until <= time {
            suspected.removeFirst()
            let text = "\(first.push) is answered NOT_ONLINE, and the session of \(first.device) was open all the while"
            add(time, text)
        }
        for (push, wait) in expected where wait.until <= time {
            expected[push] = nil
            for device in wait.devices.sorted() {
                let text = "\(push) is answered as taken, and \(device), whose session was open all the while, lacks it"
                add(time, text)
            }
        }
    }

    // MARK: Devices

    private mutating func arrive(_ device: String, _ instance: String, _ user: String?) {
        if let before = sessions[device] { forget(device, before) }
        func audience(_ kind: ChannelKind, _ target: String) -> HistoryTarget {
            HistoryTarget(instance: instance, kind: kind, target: target, bizType: "")
        }
        let audiences = [audience(.device, device)] + (user.map { [audience(.user, $0)] } ?? [])
        sessions[device] = Session(audiences: audiences)
        for audience in audiences {
            running[audience, default: []].insert(device)
            absences[audience] = nil
        }
    }

    private mutating func close(_ device: String) {
        sessions[device]?.openedAt = nil
        suspected.removeAll { $0.device == device }
        for push in Array(expected.keys) { expected[push]?.devices.remove(device) }
    }

    private mutating func leave(_ device: String, _ time: Duration) {
        close(device)
        guard let session = sessions.removeValue(forKey: device) else { return }
        forget(device, session)
        for audience in session.audiences where running[audience]?.isEmpty != false {
            absences[audience] = Absence(since: time, isClean: isCalm(since: time))
        }
    }

    private mutating func forget(_ device: String, _ session: Session) {
        for audience in session.audiences { running[audience]?.remove(device) }
    }

    private func isCalm(since time: Duration) -> Bool { calmSince.map { $0 + Self.settling <= time } ?? false }

    // MARK: Answers

    private mutating func call(_ push: String, _ target: HistoryTarget, _ isShared: Bool, _ time: Duration) {
        guard isCalm(since: time) else {
            calls[push] = nil
            return
        }
        let present = (running[target.audience] ?? []).compactMap { device -> (String, Duration)? in
            guard let openedAt = sessions[device]?.openedAt, openedAt + Self.settling <= time else { return nil }
            return (device, openedAt)
        }
        calls[push] = Call(
            target: target, isShared: isShared, at: time, present: Dictionary(uniqueKeysWithValues: present))
    }

    private mutating func judge(_ push: String, _ answer: PresenceAnswer, _ time: Duration) {
        let early = givenEarly.removeValue(forKey: push) ?? []
        guard let call = calls.removeValue(forKey: push), isCalm(since: call.at) else { return }
        let present = call.present.filter { sessions[$0.key]?.openedAt == $0.value }.map(\.key)
        switch answer {
        case .unknown: return
        case .notOnline:
            judged += 1
            if let device = present.min() { suspected.append((push, device, time + Self.noticing)) }
        case .live, .sent:
            judged += 1
            if !call.isShared, let absence = absences[call.target.audience], absence.isClean,
                absence.since + Self.settling <= call.at
            {
                add(time, "\(push) is answered SUCCESS, and no device of \(call.target) was there")
            }
            guard case .live = answer else { return }
            let devices = Set(present).subtracting(early)
            if !devices.isEmpty { expected[push] = (devices, time + Self.longestDelivery) }
        }
    }

    private mutating func give(_ push: String, _ device: String) {
        if expected[push] != nil {
            expected[push]?.devices.remove(device)
            if expected[push]?.devices.isEmpty == true { expected[push] = nil }
        } else if calls[push] != nil {
            // The data may be there before its answer.
            givenEarly[push, default: []].insert(device)
        }
    }

    private mutating func add(_ time: Duration, _ text: String) {
        faultCount += 1
        if faults.count < Self.mostFaults { faults.append(HistoryFault(promise: .honest, at: time, text: text)) }
    }
}
