import SyncModel

/// Follows a run event by event and tells which promises it breaks (reliability §5, I1 to I10).
///
/// Every event costs the same however long the run is, but a device's change of user, which costs as much as was
/// pushed to that user, the device and everybody.
package struct HistoryChecker: Sendable {
    struct Push: Sendable {
        let target: HistoryTarget
        var reach: HistoryReach
        let invokedAt: Duration
        /// Nil: it does not end within the run.
        let validUntil: Duration?
        /// The clock of the database was wrong while the push was valid: it may have ended at any time.
        var wasClockWrong: Bool
        /// Its validity is over.
        var hasEnded = false
        /// Pushes of the same channel beside it in the same call.
        var before: String?
        var after: String?
        var isRecallBegun = false
        var recalledAt: Duration?
        /// Devices whose apps were told of the recall, also before it was answered.
        var toldOfRecall: Set<String> = []
        /// Devices without a store that have taken it. The service has no record of that.
        var notOnRecord: Set<String> = []
        /// The highest id of its channel that was answered when it was first tried: it must get a higher one.
        let floor: Int64
        var id: Int64?
        var mayBeStored = false
        var isForgotten = false
        /// The backend was told that no device was there.
        var isNotOnline = false
        /// Some app was given it.
        var receiver: String?
    }

    struct Channel: Sendable {
        var highestAnswered: Int64 = 0
        var pushes: [Int64: String] = [:]
        /// Answered, in the order of their first answers.
        var answered: [String] = []
        /// The only device that may have its data is another user's now.
        var waitsForOwner = false
    }

    /// What one app was given of one channel.
    struct Given: Sendable {
        var lastFirst: Int64 = 0
        var ids: Set<Int64> = []
        var confirmed: Set<Int64> = []
        /// Recalled before they were confirmed: the app need not confirm them.
        var withdrawn: Set<Int64> = []

        var unconfirmed: Int { ids.count - confirmed.count - withdrawn.count }
    }

    struct Device: Sendable {
        /// Whose data it is to have: the user's, its own, everybody's.
        var audiences: [HistoryTarget]
        var user: String?
        /// A crash may have come between a hand-out's being counted and the app's seeing it.
        var hasCrashed = false
        /// When its app began last, or died, or changed its user.
        var startedAt: Duration
        /// Answered pushes that are for it and that its app was not given.
        var owed: Set<String> = []
        /// Since when its session is open; nil: it is not, or nothing is known of it.
        var openSince: Duration?
    }

    struct Receiver: Hashable, Sendable {
        let device: String
        let channel: HistoryTarget
    }

    /// No more are kept than these: what is wrong once is wrong a million times.
    private static let mostFaults = 200
    /// A device knows the service's clock from `Connected`, which may be 10 s under way before the device gives up; a
    /// hand-out is seen some time after it.
    package static let clockTolerance = Duration.seconds(12)
    /// No fault of a network holds a frame back for longer: a frame that comes later was written after the answer.
    package static let longestFlight = Duration.seconds(30)

    package private(set) var faults: [HistoryFault] = []
    package private(set) var faultCount = 0
    package private(set) var handOuts = 0
    package private(set) var repeatedHandOuts = 0
    package private(set) var answeredPushes = 0
    package private(set) var forgottenPushes = 0
    /// How many pairs of an answered push and an app it is for are open: the lag of the whole service.
    package internal(set) var owed = 0
    var pushes: [String: Push] = [:]
    private var unanswered: Set<String> = []
    var channels: [HistoryTarget: Channel] = [:]
    private var channelsByAudience: [HistoryTarget: Set<HistoryTarget>] = [:]
    var devices: [String: Device] = [:]
    private var devicesByAudience: [HistoryTarget: Set<String>] = [:]
    var given: [Receiver: Given] = [:]
    /// What was pushed later than this cannot have been lost with the database that had it.
    private var lostCommitsAt: Duration?
    var isDatabaseClockRight = true
    /// Ends of pushes that are still to come, the next one last.
    var ends: [(at: Duration, push: String)] = []

    package init() {}

    /// Pushes that were begun.
    package var invokedPushes: Int { pushes.count }

    // MARK: Events

    /// - Parameter time: since the run's beginning.
    package mutating func observe(_ event: HistoryEvent, at time: Duration) {
        expire(at: time)
        switch event {
        case .invoked(let push, let target, let reach, let validUntil): invoke(push, target, reach, validUntil, time)
        case .inOneCall(let pushes): chain(pushes)
        case .recallBegan(let push): beginRecall(push)
        case .recalled(let push): recall(push, time)
        case .notOnRecord(let push, let device):
            pushes[push]?.notOnRecord.insert(device)
            if devices[device]?.owed.remove(Self.tombstone(of: push)) != nil { owed -= 1 }
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
        case .given(let handOut): give(handOut, time)
        case .tombstone(let device, let channel, let id, let recalls):
            giveTombstone(device, channel, id, recalls, time)
        case .confirmed(let device, let channel, let id):
            let receiver = receiver(device, channel)
            given[receiver]?.confirmed.insert(id)
            given[receiver]?.withdrawn.remove(id)
        case .stale(let device, let bizType, let session):
            add(.verified, time, "\(device) is sent \(bizType) on session \(session), which is not valid any more")
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
        pushes[push] = Push(
            target: target, reach: reach, invokedAt: time, validUntil: validUntil,
            wasClockWrong: validUntil != nil && !isDatabaseClockRight,
            floor: channels[target]?.highestAnswered ?? 0)
        unanswered.insert(push)
        guard let validUntil else { return }
        var (place, upper) = (0, ends.count)
        while place < upper {
            let middle = (place + upper) / 2
            if ends[middle].at > validUntil { place = middle + 1 } else { upper = middle }
        }
        ends.insert((validUntil, push), at: place)
    }

    private mutating func answer(_ name: String, _ id: Int64, _ time: Duration) {
        guard var push = pushes[name] else { return add(.attempted, time, "\(name) is answered, and nobody pushed it") }
        let isNew = push.id == nil || push.isForgotten
        if let known = push.id, known != id, !mayBeLost(push) {
            add(.identified, time, "\(name) has two ids, \(known) and \(id)")
        }
        if push.id == nil, id <= push.floor {
            add(.ordered, time, "\(name) has \(id), and an earlier push of its channel \(push.floor)")
        }
        if push.isForgotten { forgottenPushes -= 1 }
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
            answeredPushes += 1
        }
        channels[push.target] = channel
        channelsByAudience[push.target.audience, default: []].insert(push.target)
        guard isNew else { return }
        for device in audience(push.target) where isDue(name, to: device) { owe(name, to: device) }
    }

    private mutating func notOnline(_ name: String, _ time: Duration) {
        guard let push = pushes[name] else { return }
        pushes[name]?.isNotOnline = true
        // What was given before a database without it took over was stored anew, and that is what the answer is about.
        if let receiver = push.receiver, !mayBeLost(push) {
            add(.honest, time, "\(name) is answered as taken by nobody, and \(receiver) was given it")
        }
    }

    private mutating func bind(_ name: String, _ instance: String, _ user: String?, _ time: Duration) {
        close(name)
        let before = devices[name]
        if let before, before.user == user {
            devices[name]?.startedAt = time
            return
        }
        owed -= before?.owed.count ?? 0
        for audience in before?.audiences ?? [] { devicesByAudience[audience]?.remove(name) }
        var device = Device(
            audiences: Self.audiences(of: name, instance, user), user: user, hasCrashed: before?.hasCrashed ?? false,
            startedAt: time)
        devices[name] = device
        let channels = device.audiences.flatMap { channelsByAudience[$0] ?? [] }
        for channel in channels {
            device.owed.formUnion(self.channels[channel]?.answered.filter { isDue($0, to: name) } ?? [])
        }
        for audience in device.audiences { devicesByAudience[audience, default: []].insert(name) }
        owed += device.owed.count
        devices[name] = device
    }

    private mutating func give(_ handOut: HistoryHandOut, _ time: Duration) {
        handOuts += 1
        let (device, name, id) = (handOut.device, handOut.push, handOut.id)
        guard let push = pushes[name] else {
            return add(.attempted, time, "\(device) is given \(name), which nobody pushed")
        }
        if handOut.payload != push.target.payload(of: name) {
            add(.attempted, time, "\(device) is given \(name) with the payload \(handOut.payload.prefix(100))")
        }
        let isNamed = handOut.from.ofEverybody == push.target
        if !isNamed || !isFor(push.target, device) {
            add(.addressed, time, "\(device) is given \(name), which is for \(push.target)")
        }
        if case .device(let only) = push.reach, only != device {
            add(.addressed, time, "\(device) is given \(name), which only \(only) may have")
        }
        if push.reach == .nobody { add(.addressed, time, "\(device) is given \(name), which is for no device") }
        if push.reach == .one, let other = push.receiver, other != device {
            add(.addressed, time, "\(device) is given \(name), which is for one device and \(other) has")
        }
        if push.isNotOnline, !mayBeLost(push) {
            add(.honest, time, "\(device) is given \(name), answered as taken by nobody")
        }
        let isFirst = self.given[self.receiver(device, isNamed ? handOut.from : push.target)]?.ids.contains(id) != true
        if isFirst, handOut.attempt == 1 { checkLate(device, name, push, time) }
        if let known = push.id, known != id, !mayBeLost(push) {
            add(.identified, time, "\(device) is given \(name) as \(id), and it was answered as \(known)")
        }
        pushes[name]?.receiver = push.receiver ?? device
        let receiver = receiver(device, isNamed ? handOut.from : push.target)
        var given = given.removeValue(forKey: receiver) ?? Given()
        defer { self.given[receiver] = given }
        if given.confirmed.contains(id) { add(.delivered, time, "\(device) is given \(name) after it confirmed it") }
        guard given.ids.insert(id).inserted else {
            repeatedHandOuts += 1
            if handOut.attempt <= 1 { add(.delivered, time, "\(device) is given \(name) twice as the first time") }
            return
        }
        if handOut.attempt != 1, devices[device]?.hasCrashed != true || handOut.attempt < 1 {
            add(.delivered, time, "\(device) is first given \(name) as attempt \(handOut.attempt)")
        }
        if id <= given.lastFirst { add(.ordered, time, "\(device) is given \(name) as \(id) after \(given.lastFirst)") }
        given.lastFirst = max(given.lastFirst, id)
        if push.isRecallBegun { given.withdrawn.insert(id) }
        if push.target.kind == .globalUser {
            self.given[Receiver(device: device, channel: push.target), default: Given()].ids.insert(id)
        }
        settle(name, push, with: device)
    }

    private mutating func forget(_ name: String, _ time: Duration) {
        guard let push = pushes[name], push.id != nil, !push.isForgotten else { return }
        guard mayBeLost(push) else { return add(.stored, time, "\(name) was answered and is not stored") }
        pushes[name]?.isForgotten = true
        forgottenPushes += 1
        disown(name, push.target)
        // Its recall is lost with it.
        disown(Self.tombstone(of: name), push.target)
    }

    // MARK: The end

    /// Compares what was answered with what the database holds.
    ///
    /// - Parameter stored: every oplog of the run's channels, by push and in the order of its channel; what has expired
    ///   is not among it.
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
                add(.attempted, time, "\(row.push) is stored, and nobody pushed it")
                continue
            }
            if push.target != row.target { add(.addressed, time, "\(row.push) is stored for \(row.target)") }
            if !push.mayBeStored {
                add(.attempted, time, "\(row.push) is stored, and its call was said to have failed")
            }
        }
        for (name, push) in pushes.sorted(by: { $0.key < $1.key }) {
            guard let id = push.id, !push.isForgotten, push.reach != .optional, ids[name] != id else { continue }
            if let other = ids[name] {
                // What a standby lacked may have been stored once more, by a command that came again.
                if !mayBeLost(push) || other < id {
                    add(.stored, time, "\(name) was answered as \(id), stored as \(other)")
                }
            } else if !mayBeLost(push) {
                add(.stored, time, "\(name) was answered as \(id) and is not stored")
            }
        }
    }

    /// What an app should have been given and was not.
    package func lacks(_ device: String) -> [String] { (devices[device]?.owed ?? []).sorted() }

    /// What is open since a time: calls begun before it without an answer, and hand-outs of such pushes that are owed
    /// to apps that have run all the while. One that began later has its own time to catch up.
    ///
    /// - Parameter isExempt: whether nobody is there who may be given data of this channel.
    package func open(since time: Duration, unless isExempt: (HistoryTarget) -> Bool = { _ in false }) -> Int {
        let calls = unanswered.count { isOld($0, time) }
        return devices.values.reduce(calls) { sum, device in
            guard device.startedAt < time else { return sum }
            return sum + device.owed.count { isOld($0, time) && !self.isExempt($0, isExempt) }
        }
    }

    private func isOld(_ push: String, _ time: Duration) -> Bool { pushes[push].map { $0.invokedAt < time } ?? false }

    private func isExempt(_ push: String, _ isExempt: (HistoryTarget) -> Bool) -> Bool {
        pushes[push].map { isExempt($0.target) } ?? false
    }

    /// The first of what is open since a time, in words.
    ///
    /// - Parameters:
    ///   - limit: no more than so many of each sort.
    ///   - isExempt: whether nobody is there who may be given data of this channel.
    ///   - about: what else is known of a device.
    package func describeOpen(
        since time: Duration, upTo limit: Int, unless isExempt: (HistoryTarget) -> Bool = { _ in false },
        about: (_ device: String) -> String
    ) -> [String] {
        func isOpen(_ push: String) -> Bool { isOld(push, time) && !self.isExempt(push, isExempt) }
        let calls = unanswered.filter { isOld($0, time) }.sorted()
        let late = devices.filter { $0.value.startedAt < time && $0.value.owed.contains(where: isOpen) }
            .sorted { $0.key < $1.key }
        return calls.prefix(limit).map { "\($0) is not answered" }
            + late.prefix(limit).map { name, device in
                let open = device.owed.filter(isOpen).sorted()
                let types = Set(open.compactMap { pushes[$0]?.target.bizType }).sorted()
                let first = open.prefix(2).joined(separator: ", ")
                return "\(name) lacks \(open.count) of \(types.joined(separator: ", ")) (\(first); \(about(name)))"
            }
    }

    /// Every device whose app was not given all, with what it lacks.
    ///
    /// - Parameter isExempt: whether nobody is there who may be given data of this channel.
    package func lagging(unless isExempt: (HistoryTarget) -> Bool = { _ in false }) -> [(
        device: String, lacks: [String]
    )] {
        devices.map { ($0.key, $0.value.owed.filter { !self.isExempt($0, isExempt) }.sorted()) }
            .filter { !$0.1.isEmpty }.sorted { $0.0 < $1.0 }
    }

    /// When a push was begun; nil: nobody pushed it.
    package func invokedAt(_ push: String) -> Duration? { pushes[push]?.invokedAt }

    /// What apps were given and have not confirmed, of data that they may have now: it comes again until they do.
    package var unconfirmed: [(device: String, ids: Int)] {
        given.filter { $0.value.unconfirmed > 0 && isVisible($0.key) }
            .map { ($0.key.device, $0.value.unconfirmed) }
            .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    }

    /// All that should have been given was given, or it is a fault.
    ///
    /// - Parameter isExempt: whether nobody is there who may be given data of this channel.
    package mutating func expectNothingOwed(
        at time: Duration, unless isExempt: (HistoryTarget) -> Bool = { _ in false }
    ) {
        for (device, lacks) in lagging(unless: isExempt) {
            let first = lacks.prefix(3).joined(separator: ", ")
            add(.delivered, time, "\(device) lacks \(lacks.count), among them \(first)")
        }
    }

    /// Answered pushes of a channel that are not forgotten, in the order of their first answers.
    package func answered(_ target: HistoryTarget) -> [String] {
        channels[target]?.answered.filter { pushes[$0]?.isForgotten == false } ?? []
    }

    /// A promise that the one who runs it saw broken.
    package mutating func add(_ promise: HistoryFault.Promise, _ time: Duration, _ text: String) {
        faultCount += 1
        if faults.count < Self.mostFaults { faults.append(HistoryFault(promise: promise, at: time, text: text)) }
    }

    // MARK: Who gets what

    private static func audiences(of device: String, _ instance: String, _ user: String?) -> [HistoryTarget] {
        func audience(_ kind: ChannelKind, _ target: String) -> HistoryTarget {
            HistoryTarget(instance: instance, kind: kind, target: target, bizType: "")
        }
        let own = [audience(.device, device), audience(.globalDevice, "")]
        return own + (user.map { [audience(.user, $0), audience(.globalUser, "")] } ?? [])
    }

    func audience(_ target: HistoryTarget) -> Set<String> { devicesByAudience[target.audience] ?? [] }

    func isFor(_ target: HistoryTarget, _ device: String) -> Bool { audience(target).contains(device) }

    func receiver(_ device: String, _ channel: HistoryTarget) -> Receiver {
        guard channel.kind == .globalUser, channel.target.isEmpty else {
            return Receiver(device: device, channel: channel)
        }
        let ofUser = HistoryTarget(
            instance: channel.instance, kind: channel.kind, target: devices[device]?.user ?? "",
            bizType: channel.bizType)
        return Receiver(device: device, channel: ofUser)
    }

    private func isVisible(_ receiver: Receiver) -> Bool {
        let isItsUsers =
            receiver.channel.kind != .globalUser || devices[receiver.device]?.user == receiver.channel.target
        return isItsUsers && isFor(receiver.channel.ofEverybody, receiver.device)
    }

    /// Whether a push was answered before a database without it took over.
    func mayBeLost(_ push: Push) -> Bool { lostCommitsAt.map { push.invokedAt <= $0 } ?? false }

    /// Whether a device that it is for still has to be given a push.
    private func isDue(_ name: String, to device: String) -> Bool {
        guard let push = pushes[name], let id = push.id, !push.isForgotten, !push.isRecallBegun, !push.hasEnded,
            !push.wasClockWrong
        else { return false }
        let isGiven = given[Receiver(device: device, channel: push.target)]?.ids.contains(id) == true
        return switch push.reach {
        // Every user's data has come to a device once any of its users was given it.
        case .everyone: !isGiven
        case .anyone, .one: push.receiver == nil && channels[push.target]?.waitsForOwner != true
        case .device(let only): only == device && !isGiven
        case .connected: !isGiven && (devices[device]?.openSince.map { $0 <= push.invokedAt } ?? false)
        case .optional, .nobody: false
        }
    }

    mutating func owe(_ push: String, to device: String) {
        if devices[device]?.owed.insert(push).inserted == true { owed += 1 }
    }

    mutating func disown(_ name: String, _ target: HistoryTarget) {
        for device in audience(target) where devices[device]?.owed.remove(name) != nil { owed -= 1 }
    }

    private mutating func settle(_ name: String, _ push: Push, with device: String) {
        let isShared = push.reach == .anyone || push.reach == .one
        let settled = isShared ? audience(push.target) : [device]
        for device in settled where devices[device]?.owed.remove(name) != nil { owed -= 1 }
    }
}
