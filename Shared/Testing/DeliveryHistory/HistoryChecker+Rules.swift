import SyncModel

/// Rules that go beyond the delivery of a push: the order within a call, validity, recall, sessions and owners.
extension HistoryChecker {
    // MARK: Calls with several pushes

    mutating func chain(_ names: [String]) {
        var last: [HistoryTarget: String] = [:]
        for name in names {
            guard let target = pushes[name]?.target else { continue }
            if let before = last.updateValue(name, forKey: target) {
                pushes[name]?.neighbours.before = before
                pushes[before]?.neighbours.after = name
            }
        }
    }

    /// Compares the first id of a push with the ids of its neighbours in the same call.
    mutating func checkOrder(_ name: String, _ push: HistoryPush, _ id: Int64, _ time: Duration) {
        if let before = push.neighbours.before, let other = pushes[before], let otherID = other.id, otherID >= id,
            !mayBeLost(other)
        {
            add(.ordered, time, "\(name) has \(id), and \(before), which precedes it in the call, has \(otherID)")
        }
        if let after = push.neighbours.after, let other = pushes[after], let otherID = other.id, otherID <= id,
            !mayBeLost(other)
        {
            add(.ordered, time, "\(name) has \(id), and \(after), which follows it in the call, has \(otherID)")
        }
    }

    // MARK: Validity

    /// Clears owed pushes whose validity has ended.
    package mutating func expire(at time: Duration) {
        while let name = expiries.removeFirst(endedBy: time) {
            pushes[name]?.validity.hasEnded = true
            if let push = pushes[name] { disown(name, push.target) }
        }
    }

    /// While the clock is wrong, a push with an end of its validity can expire early or late, so no device must receive
    /// it.
    mutating func setClock(isRight: Bool) {
        isDatabaseClockRight = isRight
        guard !isRight else { return }
        for name in expiries.pushes {
            pushes[name]?.validity.wasClockWrong = true
            if let push = pushes[name] { disown(name, push.target) }
        }
    }

    /// Checks the first hand-out of a push that has ended or was recalled. By a clock that was set back, a push that
    /// had ended is valid again (D11).
    mutating func checkLate(_ device: String, _ name: String, _ push: HistoryPush, _ time: Duration) {
        let goesByRightClock = isDatabaseClockRight && !push.validity.wasClockWrong
        if let end = push.validity.until, time > end + Self.clockTolerance, goesByRightClock {
            add(.attempted, time, "\(device) was handed \(name) \(time - end) after its validity ended")
        }
        // The device can have stored the push before the recall, in an earlier process. So only a process that was
        // started before the recall counts.
        guard let recalledAt = push.recall.answeredAt, time > recalledAt + Self.longestFlight, !mayBeLost(push),
            let device = devices[device], device.startedAt < recalledAt
        else { return }
        add(.recalled, time, "an app was handed \(name) \(time - recalledAt) after the success response to its recall")
    }

    // MARK: Recalls

    mutating func beginRecall(_ name: String) {
        guard let push = pushes[name], !push.recall.isBegun else { return }
        pushes[name]?.recall.isBegun = true
        disown(name, push.target)
        guard let id = push.id else { return }
        for (receiver, had) in given where receiver.channel.ofEverybody == push.target {
            if had.ids.contains(id), !had.confirmed.contains(id) { given[receiver]?.withdrawn.insert(id) }
        }
    }

    /// A device whose app has confirmed the push must receive the tombstone.
    mutating func recall(_ name: String, _ time: Duration) {
        guard let push = pushes[name], push.recall.answeredAt == nil else { return }
        pushes[name]?.recall.answeredAt = time
        guard let id = push.id, push.reach == .everyone, push.target.kind == .user || push.target.kind == .device else {
            return
        }
        let tombstone = Self.tombstone(of: name)
        pushes[tombstone] = HistoryPush(target: push.target, reach: .everyone, invokedAt: time, lowerBound: 0)
        let exempt = push.recall.toldDevices.union(push.recall.devicesNotOnRecord)
        for device in audience(push.target).subtracting(exempt) {
            guard given[HistoryReceiver(device: device, channel: push.target)]?.confirmed.contains(id) == true else {
                continue
            }
            owedHandOuts.add(tombstone, to: device)
        }
    }

    mutating func recordTombstone(
        _ device: String, _ channel: HistoryTarget, _ id: Int64, _ recalls: Int64, _ time: Duration
    ) {
        let target = channel.ofEverybody
        guard let name = channels[target]?.pushes[recalls], pushes[name]?.recall.isBegun == true else {
            return add(
                .attempted, time, "\(device) got a tombstone for \(recalls) of \(target), which was not recalled")
        }
        if !isFor(target, device) { add(.addressed, time, "\(device) got a tombstone of \(target)") }
        if recalls >= id { add(.ordered, time, "\(device) got tombstone \(id) for the later oplog \(recalls)") }
        pushes[name]?.recall.toldDevices.insert(device)
        let receiver = receiver(device, channel)
        var given = given.removeValue(forKey: receiver) ?? ReceivedOplogs()
        if given.confirmed.contains(id) {
            add(.delivered, time, "\(device) got a tombstone again after it confirmed it")
        }
        if given.ids.insert(id).inserted {
            // A device without positions can also receive the tombstone of a push that it never received, by a
            // redelivery.
            let isOnRecord =
                given.ids.contains(recalls) && pushes[name]?.recall.devicesNotOnRecord.contains(device) != true
            if id <= given.lastFirst, isOnRecord {
                add(.ordered, time, "\(device) got tombstone \(id) after \(given.lastFirst)")
            }
            given.lastFirst = max(given.lastFirst, id)
        }
        self.given[receiver] = given
        owedHandOuts.remove(Self.tombstone(of: name), from: device)
    }

    static func tombstone(of push: String) -> String { "the recall of \(push)" }

    // MARK: Sessions

    /// A push that is owed to open sessions alone is no longer owed: the next session reads it as part of its backlog,
    /// where a threshold can discard it.
    mutating func close(_ device: String) {
        guard devices[device]?.openSince != nil else { return }
        devices[device]?.openSince = nil
        for name in owedHandOuts.pushes(of: device) where pushes[name]?.reach == .connected {
            owedHandOuts.remove(name, from: device)
        }
    }

    /// The database has an earlier owner again. That owner can receive the pushes that were for the later owner alone.
    mutating func forgetOwner(of target: HistoryTarget) {
        for (name, push) in pushes where push.target == target {
            if case .device = push.reach { pushes[name]?.reach = .anyone }
        }
    }

    mutating func waitForOwner(_ target: HistoryTarget) {
        channels[target, default: Channel()].waitsForOwner = true
        for device in audience(target) {
            for name in owedHandOuts.pushes(of: device) where pushes[name]?.target == target {
                guard pushes[name]?.reach == .anyone || pushes[name]?.reach == .one else { continue }
                owedHandOuts.remove(name, from: device)
            }
        }
    }
}
