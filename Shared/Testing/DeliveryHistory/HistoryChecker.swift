import SyncModel

/// Checks the events of a run one by one and records each violation of an invariant (I1 to I10).
///
/// The cost of an event does not depend on the length of the run. The exception is a device's change of user: its cost
/// grows with the number of pushes to that user, to that device and to global targets.
package struct HistoryChecker: Sendable {
    struct Channel: Sendable {
        var highestAnswered: Int64 = 0
        var pushes: [Int64: String] = [:]
        /// Names of answered pushes, in the order of their first responses.
        var answered: [String] = []
        /// The only device that is eligible for the data is bound to another user now.
        var waitsForOwner = false
    }

    struct Device: Sendable {
        /// The targets whose data the device must receive: its user, itself and the global targets.
        var audiences: [HistoryTarget]
        var user: String?
        /// A crash can come after a hand-out was counted and before the app received the oplog.
        var hasCrashed = false
        /// Time of the last start, crash or change of user.
        var startedAt: Duration
        /// Start of the open session. The value is nil if no session is known to be open.
        var openSince: Duration?
    }

    /// Tolerance for hand-outs after the end of validity. The device takes the database time from `Connected`, which
    /// can be in transit for 10 s before the device gives up.
    package static let clockTolerance = Duration.seconds(12)
    /// No network fault delays a frame for longer. A frame that arrives later was written after the response.
    package static let longestFlight = Duration.seconds(30)

    package internal(set) var counts = HistoryCounts()
    private var faultLog = HistoryFaultLog()
    var owedHandOuts = OwedHandOuts()
    var pushes: [String: HistoryPush] = [:]
    private var unanswered: Set<String> = []
    var channels: [HistoryTarget: Channel] = [:]
    private var audiences = AudienceIndex()
    var devices: [String: Device] = [:]
    var given: [HistoryReceiver: ReceivedOplogs] = [:]
    /// Pushes that were invoked after this time cannot be lost with the former database.
    private var lostCommitsAt: Duration?
    var isDatabaseClockRight = true
    var expiries = ExpiryQueue()

    package init() {}

    package var faults: [HistoryFault] { faultLog.faults }
    package var faultCount: Int { faultLog.count }
    /// Number of pushes that were invoked.
    package var invokedPushes: Int { pushes.count }
    /// Number of owed pairs of an answered push and a device: the lag of the whole service.
    package var owed: Int { owedHandOuts.count }

    // MARK: Events

    /// - Parameter time: since the start of the run.
    package mutating func observe(_ event: HistoryEvent, at time: Duration) {
        expire(at: time)
        switch event {
        case .invoked(let push, let target, let reach, let validUntil): invoke(push, target, reach, validUntil, time)
        case .inOneCall(let pushes): chain(pushes)
        case .recallBegan(let push): beginRecall(push)
        case .recalled(let push): recall(push, time)
        case .notOnRecord(let push, let device):
            pushes[push]?.recall.devicesNotOnRecord.insert(device)
            owedHandOuts.remove(Self.tombstone(of: push), from: device)
        case .databaseClock(let isRight): setClock(isRight: isRight)
        case .uncertain(let push): pushes[push]?.mayBeStored = true
        case .abandoned(let push): unanswered.remove(push)
        case .answered(let push, let id): answer(push, id, time)
        case .notOnline(let push, let id):
            answer(push, id, time)
            notOnline(push, time)
        case .bound(let device, let instance, let user): bind(device, instance, user, time)
        case .crashed(let device):
            devices[device]?.hasCrashed = true
            devices[device]?.startedAt = time
        case .given(let handOut): recordHandOut(handOut, time)
        case .tombstone(let device, let channel, let id, let recalls):
            recordTombstone(device, channel, id, recalls, time)
        case .confirmed(let device, let channel, let id):
            let receiver = receiver(device, channel)
            given[receiver]?.confirmed.insert(id)
            given[receiver]?.withdrawn.remove(id)
        case .stale(let device, let bizType, let session):
            add(.verified, time, "\(device) got \(bizType) on session \(session), which is no longer valid")
        case .opened(let device): devices[device]?.openSince = time
        case .closed(let device): close(device)
        case .waitsForOwner(let target): waitForOwner(target)
        case .lostCommits: lostCommitsAt = time
        case .ownerForgotten(let target): forgetOwner(of: target)
        case .forgotten(let push): forget(push, time)
        }
    }

    private mutating func invoke(
        _ push: String, _ target: HistoryTarget, _ reach: HistoryReach, _ validUntil: Duration?, _ time: Duration
    ) {
        guard pushes[push] == nil else { return }
        pushes[push] = HistoryPush(
            target: target, reach: reach, invokedAt: time,
            validity: HistoryPush.Validity(
                until: validUntil, wasClockWrong: validUntil != nil && !isDatabaseClockRight),
            lowerBound: channels[target]?.highestAnswered ?? 0)
        unanswered.insert(push)
        if let validUntil { expiries.insert(push, endingAt: validUntil) }
    }

    private mutating func answer(_ name: String, _ id: Int64, _ time: Duration) {
        guard var push = pushes[name] else { return add(.attempted, time, "\(name) was answered without a push") }
        let isNew = push.id == nil || push.isForgotten
        if let known = push.id, known != id, !mayBeLost(push) {
            add(.identified, time, "\(name) has two ids, \(known) and \(id)")
        }
        if push.id == nil, id <= push.lowerBound {
            add(.ordered, time, "\(name) has \(id), an earlier push of its channel has \(push.lowerBound)")
        }
        if push.isForgotten { counts.forgottenPushes -= 1 }
        let isFirst = push.id == nil
        if isFirst { checkOrder(name, push, id, time) }
        push.id = id
        push.mayBeStored = true
        push.isForgotten = false
        pushes[name] = push
        var channel = channels.removeValue(forKey: push.target) ?? Channel()
        if let other = channel.pushes[id], other != name {
            add(.identified, time, "\(id) of \(push.target) is both \(other) and \(name)")
        }
        channel.pushes[id] = name
        channel.highestAnswered = max(channel.highestAnswered, id)
        if isFirst {
            unanswered.remove(name)
            channel.answered.append(name)
            counts.answeredPushes += 1
        }
        channels[push.target] = channel
        audiences.insert(channel: push.target)
        guard isNew else { return }
        for device in audience(push.target) where isDue(name, to: device) { owedHandOuts.add(name, to: device) }
    }

    private mutating func notOnline(_ name: String, _ time: Duration) {
        guard let push = pushes[name] else { return }
        pushes[name]?.isNotOnline = true
        // A push that was handed out before a failover lost it was stored again. The response is about the second
        // oplog.
        if let receiver = push.receiver, !mayBeLost(push) {
            add(.honest, time, "\(name) was answered NOT_ONLINE although \(receiver) got it")
        }
    }

    private mutating func bind(_ name: String, _ instance: String, _ user: String?, _ time: Duration) {
        close(name)
        let before = devices[name]
        if let before, before.user == user {
            devices[name]?.startedAt = time
            return
        }
        audiences.remove(name, from: before?.audiences ?? [])
        let device = Device(
            audiences: AudienceIndex.audiences(of: name, instance, user), user: user,
            hasCrashed: before?.hasCrashed ?? false, startedAt: time)
        devices[name] = device
        var owed: Set<String> = []
        for channel in audiences.channels(of: device.audiences) {
            owed.formUnion(channels[channel]?.answered.filter { isDue($0, to: name) } ?? [])
        }
        audiences.insert(name, into: device.audiences)
        owedHandOuts.set(owed, of: name)
    }

    private mutating func recordHandOut(_ handOut: HistoryHandOut, _ time: Duration) {
        counts.handOuts += 1
        let (device, name, id) = (handOut.device, handOut.push, handOut.id)
        guard let push = pushes[name] else {
            return add(.attempted, time, "\(device) got \(name), which no backend pushed")
        }
        if handOut.payload != push.target.payload(of: name) {
            add(.attempted, time, "\(device) got \(name) with the payload \(handOut.payload.prefix(100))")
        }
        let isNamed = handOut.from.ofEverybody == push.target
        if !isNamed || !isFor(push.target, device) {
            add(.addressed, time, "\(device) got \(name), which is for \(push.target)")
        }
        if case .device(let only) = push.reach, only != device {
            add(.addressed, time, "\(device) got \(name), which is for \(only) alone")
        }
        if push.reach == .nobody { add(.addressed, time, "\(device) got \(name), which is for no device") }
        if push.reach == .one, let other = push.receiver, other != device {
            add(.addressed, time, "\(device) got \(name), which is for one device and was handed to \(other)")
        }
        if push.isNotOnline, !mayBeLost(push) {
            add(.honest, time, "\(device) got \(name), which was answered NOT_ONLINE")
        }
        let isFirst = self.given[self.receiver(device, isNamed ? handOut.from : push.target)]?.ids.contains(id) != true
        if isFirst, handOut.attempt == 1 { checkLate(device, name, push, time) }
        if let known = push.id, known != id, !mayBeLost(push) {
            add(.identified, time, "\(device) got \(name) as \(id), but it was answered as \(known)")
        }
        pushes[name]?.receiver = push.receiver ?? device
        let receiver = receiver(device, isNamed ? handOut.from : push.target)
        var given = given.removeValue(forKey: receiver) ?? ReceivedOplogs()
        defer { self.given[receiver] = given }
        if given.confirmed.contains(id) { add(.delivered, time, "\(device) got \(name) after it confirmed it") }
        guard given.ids.insert(id).inserted else {
            counts.repeatedHandOuts += 1
            if handOut.attempt <= 1 { add(.delivered, time, "\(device) got \(name) twice as the first attempt") }
            return
        }
        if handOut.attempt != 1, devices[device]?.hasCrashed != true || handOut.attempt < 1 {
            add(.delivered, time, "\(device) first got \(name) as attempt \(handOut.attempt)")
        }
        if id <= given.lastFirst { add(.ordered, time, "\(device) got \(name) as \(id) after \(given.lastFirst)") }
        given.lastFirst = max(given.lastFirst, id)
        if push.recall.isBegun { given.withdrawn.insert(id) }
        if push.target.kind == .globalUser {
            self.given[HistoryReceiver(device: device, channel: push.target), default: ReceivedOplogs()].ids.insert(id)
        }
        clearOwed(name, push, to: device)
    }

    private mutating func forget(_ name: String, _ time: Duration) {
        guard let push = pushes[name], push.id != nil, !push.isForgotten else { return }
        guard mayBeLost(push) else { return add(.stored, time, "\(name) was answered and is not stored") }
        pushes[name]?.isForgotten = true
        counts.forgottenPushes += 1
        disown(name, push.target)
        // The tombstone is lost with the push.
        disown(Self.tombstone(of: name), push.target)
    }

    // MARK: End of the run

    /// Compares the responses with the content of the database.
    ///
    /// - Parameter stored: every oplog of the run's channels, in the order of each channel. Expired oplogs are absent.
    package mutating func compare(stored: [(push: String, target: HistoryTarget, id: Int64)], at time: Duration) {
        var ids: [String: Int64] = [:]
        var last: [HistoryTarget: Int64] = [:]
        for row in stored {
            if ids.updateValue(row.id, forKey: row.push) != nil {
                add(.identified, time, "\(row.push) is stored twice")
            }
            if let before = last.updateValue(row.id, forKey: row.target), before >= row.id {
                add(.ordered, time, "\(row.target) has \(row.id) after \(before)")
            }
            guard let push = pushes[row.push] else {
                add(.attempted, time, "\(row.push) is stored, but no backend pushed it")
                continue
            }
            if push.target != row.target { add(.addressed, time, "\(row.push) is stored for \(row.target)") }
            if !push.mayBeStored {
                add(.attempted, time, "\(row.push) is stored, but its call was answered as failed")
            }
        }
        for (name, push) in pushes.sorted(by: { $0.key < $1.key }) {
            guard let id = push.id, !push.isForgotten, push.reach != .optional, ids[name] != id else { continue }
            if let other = ids[name] {
                // After a failover lost the push, a repeated command can have stored it again.
                if !mayBeLost(push) || other < id {
                    add(.stored, time, "\(name) was answered as \(id) but is stored as \(other)")
                }
            } else if !mayBeLost(push) {
                add(.stored, time, "\(name) was answered as \(id) but is not stored")
            }
        }
    }

    /// Names of the pushes that the device's app must still receive.
    package func lacks(_ device: String) -> [String] { owedHandOuts.pushes(of: device).sorted() }

    /// Number of open items that began before `time`: calls without a response, and owed hand-outs to apps that were
    /// started before `time`. A younger app has its own time to catch up.
    ///
    /// - Parameter isExempt: whether no eligible device of the channel is connected.
    package func open(since time: Duration, unless isExempt: (HistoryTarget) -> Bool = { _ in false }) -> Int {
        let calls = unanswered.count { isOld($0, time) }
        return devices.reduce(calls) { sum, device in
            guard device.value.startedAt < time else { return sum }
            return sum + owedHandOuts.pushes(of: device.key).count { isOld($0, time) && !self.isExempt($0, isExempt) }
        }
    }

    private func isOld(_ push: String, _ time: Duration) -> Bool { pushes[push].map { $0.invokedAt < time } ?? false }

    private func isExempt(_ push: String, _ isExempt: (HistoryTarget) -> Bool) -> Bool {
        pushes[push].map { isExempt($0.target) } ?? false
    }

    /// Describes the first items of ``open(since:unless:)``.
    ///
    /// - Parameters:
    /// - limit: at most this many calls and this many devices.
    /// - isExempt: whether no eligible device of the channel is connected.
    /// - about: further information about a device.
    package func describeOpen(
        since time: Duration, upTo limit: Int, unless isExempt: (HistoryTarget) -> Bool = { _ in false },
        about: (_ device: String) -> String
    ) -> [String] {
        func isOpen(_ push: String) -> Bool { isOld(push, time) && !self.isExempt(push, isExempt) }
        let calls = unanswered.filter { isOld($0, time) }.sorted()
        let late = devices.filter { $0.value.startedAt < time }.map(\.key)
            .filter { owedHandOuts.pushes(of: $0).contains(where: isOpen) }.sorted()
        return calls.prefix(limit).map { "\($0) is not answered" }
            + late.prefix(limit).map { name in
                let open = owedHandOuts.pushes(of: name).filter(isOpen).sorted()
                let types = Set(open.compactMap { pushes[$0]?.target.bizType }).sorted()
                let first = open.prefix(2).joined(separator: ", ")
                return "\(name) lacks \(open.count) of \(types.joined(separator: ", ")) (\(first); \(about(name)))"
            }
    }

    /// Every device with owed pushes, and the names of these pushes.
    ///
    /// - Parameter isExempt: whether no eligible device of the channel is connected.
    package func lagging(unless isExempt: (HistoryTarget) -> Bool = { _ in false }) -> [(
        device: String, lacks: [String]
    )] {
        devices.keys.map { ($0, owedHandOuts.pushes(of: $0).filter { !self.isExempt($0, isExempt) }.sorted()) }
            .filter { !$0.1.isEmpty }.sorted { $0.0 < $1.0 }
    }

    /// Time of the first attempt of a push. The value is nil if no backend pushed it.
    package func invokedAt(_ push: String) -> Duration? { pushes[push]?.invokedAt }

    /// Numbers of unconfirmed oplogs, for devices that are still eligible for them. The service must resend these
    /// oplogs.
    package var unconfirmed: [(device: String, ids: Int)] {
        given.filter { $0.value.unconfirmed > 0 && isVisible($0.key) }
            .map { ($0.key.device, $0.value.unconfirmed) }
            .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    }

    /// Adds a fault for each device that lacks a push.
    ///
    /// - Parameter isExempt: whether no eligible device of the channel is connected.
    package mutating func expectNothingOwed(
        at time: Duration, unless isExempt: (HistoryTarget) -> Bool = { _ in false }
    ) {
        for (device, lacks) in lagging(unless: isExempt) {
            let first = lacks.prefix(3).joined(separator: ", ")
            add(.delivered, time, "\(device) lacks \(lacks.count), among them \(first)")
        }
    }

    /// Answered pushes of a channel, without lost ones, in the order of their first responses.
    package func answered(_ target: HistoryTarget) -> [String] {
        channels[target]?.answered.filter { pushes[$0]?.isForgotten == false } ?? []
    }

    /// Adds a violation that the caller found.
    package mutating func add(_ promise: HistoryFault.Promise, _ time: Duration, _ text: String) {
        faultLog.add(promise, at: time, text)
    }

    // MARK: Audiences

    func audience(_ target: HistoryTarget) -> Set<String> { audiences.devices(of: target) }

    func isFor(_ target: HistoryTarget, _ device: String) -> Bool { audience(target).contains(device) }

    func receiver(_ device: String, _ channel: HistoryTarget) -> HistoryReceiver {
        guard channel.kind == .globalUser, channel.target.isEmpty else {
            return HistoryReceiver(device: device, channel: channel)
        }
        let ofUser = HistoryTarget(
            instance: channel.instance, kind: channel.kind, target: devices[device]?.user ?? "",
            bizType: channel.bizType)
        return HistoryReceiver(device: device, channel: ofUser)
    }

    private func isVisible(_ receiver: HistoryReceiver) -> Bool {
        let isItsUsers =
            receiver.channel.kind != .globalUser || devices[receiver.device]?.user == receiver.channel.target
        return isItsUsers && isFor(receiver.channel.ofEverybody, receiver.device)
    }

    /// Whether a failover can have lost the push.
    func mayBeLost(_ push: HistoryPush) -> Bool { lostCommitsAt.map { push.invokedAt <= $0 } ?? false }

    /// Whether the device must still receive the push.
    private func isDue(_ name: String, to device: String) -> Bool {
        guard let push = pushes[name], let id = push.id, !push.isForgotten, !push.recall.isBegun,
            !push.validity.hasEnded, !push.validity.wasClockWrong
        else { return false }
        let isGiven = given[HistoryReceiver(device: device, channel: push.target)]?.ids.contains(id) == true
        return switch push.reach {
        // A device keeps one copy of a global user channel for all of its users.
        case .everyone: !isGiven
        case .anyone, .one: push.receiver == nil && channels[push.target]?.waitsForOwner != true
        case .device(let only): only == device && !isGiven
        case .connected: !isGiven && (devices[device]?.openSince.map { $0 <= push.invokedAt } ?? false)
        case .optional, .nobody: false
        }
    }

    mutating func disown(_ name: String, _ target: HistoryTarget) {
        owedHandOuts.remove(name, from: audience(target))
    }

    private mutating func clearOwed(_ name: String, _ push: HistoryPush, to device: String) {
        let isShared = push.reach == .anyone || push.reach == .one
        owedHandOuts.remove(name, from: isShared ? audience(push.target) : [device])
    }
}
