import SyncModel

/// Compares the responses to pushes with the times of open sessions, as the clients saw them (H4, I9).
///
/// The checker judges a response only if no session can have ended without the client's notice: no disturbing fault was
/// active during the call, or in the `settling` time before it.
package struct PresenceChecker: Sendable {
    private struct Session: Sendable {
        let audiences: [HistoryTarget]
        /// The value is nil if the client has no open session.
        var openedAt: Duration?
    }

    private struct Call: Sendable {
        let target: HistoryTarget
        let isShared: Bool
        let at: Duration
        /// Start times of the sessions that were open for at least `settling` when the call began, by device.
        let present: [String: Duration]
    }

    /// A time in which no device of an audience was connected.
    private struct Absence: Sendable {
        /// Time since which no app of the audience has run.
        let since: Duration
        /// No disturbing fault was active, so the gateways have seen the connections end.
        let isClean: Bool
    }

    /// Time after a fault until leases and sessions are on record again: a lease lasts 6 s, and the gateway then
    /// registers its sessions again. Also the time after an opening in which the registration can still be overtaken.
    package static let settling = Duration.seconds(10)
    /// Time in which a non-persistent push must reach an app whose session stayed open.
    package static let longestDelivery = Duration.seconds(30)
    /// Time for which a session must stay open after NOT_ONLINE, because a client can notice its end late.
    package static let noticeDelay = Duration.seconds(3)

    private var faultLog = HistoryFaultLog()
    /// Number of responses that were judged.
    package private(set) var judged = 0
    private var sessions: [String: Session] = [:]
    private var running: [HistoryTarget: Set<String>] = [:]
    private var absences: [HistoryTarget: Absence] = [:]
    private var calls: [String: Call] = [:]
    /// End of the last disturbing fault. The value is nil while one is active.
    private var calmSince: Duration? = .zero - settling
    /// Devices that must receive a non-persistent push, by push.
    private var expected: [String: (devices: Set<String>, until: Duration)] = [:]
    private var givenEarly: [String: Set<String>] = [:]
    /// NOT_ONLINE responses that are wrong if the session of the device continues.
    private var suspected: [(push: String, device: String, until: Duration)] = []

    package init() {}

    package var faults: [HistoryFault] { faultLog.faults }
    package var faultCount: Int { faultLog.count }

    /// Records an event.
    ///
    /// - Parameter time: since the start of the run.
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
        case .given(let push, let device): recordHandOut(push, device)
        }
    }

    /// Finds responses that have proved wrong, and non-persistent pushes that did not arrive in time.
    package mutating func check(at time: Duration) {
        while let first = suspected.first, first.until <= time {
            suspected.removeFirst()
            let text = "\(first.push) was answered NOT_ONLINE, but \(first.device) had an open session throughout"
            add(time, text)
        }
        for (push, wait) in expected where wait.until <= time {
            expected[push] = nil
            for device in wait.devices.sorted() {
                let text = "\(push) was answered SUCCESS, but \(device) had an open session throughout and lacks it"
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

    // MARK: Responses

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
            if let device = present.min() { suspected.append((push, device, time + Self.noticeDelay)) }
        case .live, .sent:
            judged += 1
            if !call.isShared, let absence = absences[call.target.audience], absence.isClean,
                absence.since + Self.settling <= call.at
            {
                add(time, "\(push) was answered SUCCESS, but no device of \(call.target) was connected")
            }
            guard case .live = answer else { return }
            let devices = Set(present).subtracting(early)
            if !devices.isEmpty { expected[push] = (devices, time + Self.longestDelivery) }
        }
    }

    private mutating func recordHandOut(_ push: String, _ device: String) {
        if expected[push] != nil {
            expected[push]?.devices.remove(device)
            if expected[push]?.devices.isEmpty == true { expected[push] = nil }
        } else if calls[push] != nil {
            // The data can arrive before the response.
            givenEarly[push, default: []].insert(device)
        }
    }

    private mutating func add(_ time: Duration, _ text: String) {
        faultLog.add(.honest, at: time, text)
    }
}
