import SyncModel

/// The rules about pushes beyond their delivery: their order in a call, their validity, their recall, and the sessions
/// and owners that they wait for.
extension HistoryChecker {
    // MARK: Calls with several pushes

    mutating func chain(_ names: [String]) {
        var last: [HistoryTarget: String] = [:]
        for name in names {
            guard let target = pushes[name]?.target else { continue }
            if let before = last.updateValue(name, forKey: target) {
                pushes[name]?.before = before
                pushes[before]?.after = name
            }
        }
    }

    /// Compares the first id of a push with those of its neighbours in the same call.
    mutating func checkOrder(_ name: String, _ push: Push, _ id: Int64, _ time: Duration) {
        if let before = push.before, let other = pushes[before], let otherID = other.id, otherID >= id,
            !mayBeLost(other)
        {
            add(.ordered, time, "\(name) has \(id), and \(before), which stands before it in the call, \(otherID)")
        }
        if let after = push.after, let other = pushes[after], let otherID = other.id, otherID <= id, !mayBeLost(other) {
            add(.ordered, time, "\(name) has \(id), and \(after), which stands behind it in the call, \(otherID)")
        }
    }

    // MARK: Validity

    /// Releases what has ended: no device has to get it any more.
    package mutating func expire(at time: Duration) {
        while let next = ends.last, next.at <= time {
            ends.removeLast()
            pushes[next.push]?.hasEnded = true
            if let push = pushes[next.push] { disown(next.push, push.target) }
        }
    }

    /// What is valid while the clock is wrong may end early or late.
    mutating func setClock(isRight: Bool) {
        isDatabaseClockRight = isRight
        guard !isRight else { return }
        for (_, name) in ends {
            pushes[name]?.wasClockWrong = true
            if let push = pushes[name] { disown(name, push.target) }
        }
    }

    /// Checks the first hand-out of a push that has ended or was recalled.
    mutating func checkLate(_ device: String, _ name: String, _ push: Push, _ time: Duration) {
        if let end = push.validUntil, time > end + Self.clockTolerance, !push.wasClockWrong {
            add(.attempted, time, "\(device) is given \(name) \(time - end) after its validity has ended")
        }
        // Its store may have had the push before the app of an earlier process was given it.
        guard let recalledAt = push.recalledAt, time > recalledAt + Self.longestFlight, !mayBeLost(push),
            let device = devices[device], device.startedAt < recalledAt
        else { return }
        add(.recalled, time, "an app is given \(name) \(time - recalledAt) after its recall was answered")
    }

    // MARK: Recalls

    mutating func beginRecall(_ name: String) {
        guard let push = pushes[name], !push.isRecallBegun else { return }
        pushes[name]?.isRecallBegun = true
        disown(name, push.target)
        guard let id = push.id else { return }
        for (receiver, had) in given where receiver.channel.ofEverybody == push.target {
            if had.ids.contains(id), !had.confirmed.contains(id) { given[receiver]?.withdrawn.insert(id) }
        }
    }

    /// Whose app has confirmed the push is to be told of its recall.
    mutating func recall(_ name: String, _ time: Duration) {
        guard let push = pushes[name], push.recalledAt == nil else { return }
        pushes[name]?.recalledAt = time
        guard let id = push.id, push.reach == .everyone, push.target.kind == .user || push.target.kind == .device else {
            return
        }
        let tombstone = Self.tombstone(of: name)
        pushes[tombstone] = Push(
            target: push.target, reach: .everyone, invokedAt: time, validUntil: nil, wasClockWrong: false, floor: 0)
        for device in audience(push.target).subtracting(push.toldOfRecall).subtracting(push.notOnRecord) {
            guard given[Receiver(device: device, channel: push.target)]?.confirmed.contains(id) == true else {
                continue
            }
            owe(tombstone, to: device)
        }
    }

    mutating func giveTombstone(
        _ device: String, _ channel: HistoryTarget, _ id: Int64, _ recalls: Int64, _ time: Duration
    ) {
        let target = channel.ofEverybody
        guard let name = channels[target]?.pushes[recalls], pushes[name]?.isRecallBegun == true else {
            return add(.attempted, time, "\(device) is told that \(recalls) of \(target) was recalled, and it was not")
        }
        if !isFor(target, device) { add(.addressed, time, "\(device) is told of a recall in \(target)") }
        if recalls >= id { add(.ordered, time, "\(device) is told by \(id) that \(recalls), behind it, was recalled") }
        pushes[name]?.toldOfRecall.insert(device)
        let receiver = receiver(device, channel)
        var given = given.removeValue(forKey: receiver) ?? Given()
        if given.confirmed.contains(id) { add(.delivered, time, "\(device) is told of a recall after it confirmed it") }
        if given.ids.insert(id).inserted {
            // A repeated delivery to a device without positions may also tell of the recall of what it never had.
            let isOnRecord = given.ids.contains(recalls) && pushes[name]?.notOnRecord.contains(device) != true
            if id <= given.lastFirst, isOnRecord {
                add(.ordered, time, "\(device) is told of a recall as \(id) after \(given.lastFirst)")
            }
            given.lastFirst = max(given.lastFirst, id)
        }
        self.given[receiver] = given
        if devices[device]?.owed.remove(Self.tombstone(of: name)) != nil { owed -= 1 }
    }

    static func tombstone(of push: String) -> String { "the recall of \(push)" }

    // MARK: Sessions

    /// The next session reads what is not given yet as a backlog.
    mutating func close(_ device: String) {
        guard devices[device]?.openSince != nil else { return }
        devices[device]?.openSince = nil
        for name in devices[device]?.owed ?? [] where pushes[name]?.reach == .connected {
            devices[device]?.owed.remove(name)
            owed -= 1
        }
    }

    /// The store has an earlier owner again: it may be given the pushes that were for the later owner alone.
    mutating func forgetOwner(of target: HistoryTarget) {
        for (name, push) in pushes where push.target == target {
            if case .device = push.reach { pushes[name]?.reach = .anyone }
        }
    }

    mutating func waitForOwner(_ target: HistoryTarget) {
        channels[target, default: Channel()].waitsForOwner = true
        for device in audience(target) {
            for name in devices[device]?.owed ?? [] where pushes[name]?.target == target {
                guard pushes[name]?.reach == .anyone || pushes[name]?.reach == .one else { continue }
                devices[device]?.owed.remove(name)
                owed -= 1
            }
        }
    }
}
