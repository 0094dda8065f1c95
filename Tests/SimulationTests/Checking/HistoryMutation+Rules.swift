import DeliveryHistory
import SyncModel

// Mutations that break the rules of HistoryChecker+Rules: order in a call, validity, recalls, open sessions, owners.
extension HistoryMutation {
    static let ofRules = ofCalls + ofRecalls + ofTombstones + ofSessions

    // MARK: Calls with several pushes, validity

    private static let ofCalls = [
        HistoryMutation("numbered against the order within a call", .ordered) { history in
            guard let (earlier, later) = history.pickInOrder() else { return false }
            history.events.insert(.inOneCall(pushes: [later.name, earlier.name]), at: later.index)
            return true
        },
        HistoryMutation("given long after its validity has ended", .attempted) { history in
            guard let (index, handOut) = history.pickFirstGiven() else { return false }
            let end = Duration.seconds(index) - HistoryChecker.clockTolerance - .seconds(1)
            return history.end(handOut.push, at: end)
        },
    ]

    // MARK: Recalls

    private static let ofRecalls = [
        HistoryMutation("given long after its recall was answered", .recalled) { history in
            history.pushLast()
            history.recall()
            history.wait(for: HistoryChecker.longestFlight)
            history.handOutLast()
            return true
        },
        HistoryMutation("recalled, and an app that has confirmed it gets no tombstone", .delivered) { history in
            history.pushAndConfirm()
            history.recall()
            return true
        },
    ]

    // MARK: Tombstones

    private static let ofTombstones = [
        HistoryMutation("tombstone of a recall that was not requested", .attempted) { history in
            history.pushAndConfirm()
            history.handOutTombstone()
            return true
        },
        HistoryMutation("tombstone in the channel of another device", .addressed) { history in
            history.pushAndConfirm()
            history.recall()
            history.handOutTombstone()
            history.handOutTombstone("device-2")
            return true
        },
        HistoryMutation("tombstone with an id that is not above the recalled one", .ordered) { history in
            history.pushAndConfirm()
            history.recall()
            history.handOutTombstone(id: GeneratedHistory.lastID)
            return true
        },
        HistoryMutation("tombstone after a later oplog", .ordered) { history in
            history.pushAndConfirm()
            history.recall()
            history.pushLast("later", id: GeneratedHistory.tombstoneID + 1)
            history.handOutLast("later", id: GeneratedHistory.tombstoneID + 1)
            history.handOutTombstone()
            return true
        },
        HistoryMutation("tombstone after it was confirmed", .delivered) { history in
            history.pushAndConfirm()
            history.recall()
            history.handOutTombstone()
            history.events.append(
                .confirmed(
                    device: GeneratedHistory.lastDevice, from: GeneratedHistory.lastChannel,
                    id: GeneratedHistory.tombstoneID))
            history.handOutTombstone()
            return true
        },
    ]

    // MARK: Sessions and owners

    private static let ofSessions = [
        HistoryMutation("not given to a device whose session was open all the while", .delivered) { history in
            history.events.append(.opened(device: GeneratedHistory.lastDevice))
            history.pushLast(reach: .connected)
            return true
        },
        HistoryMutation("given to none instead of one device", .delivered) { history in
            history.pushLast(reach: .anyone)
            return true
        },
        HistoryMutation("given to a device that does not own the data", .addressed) { history in
            history.pushLast(reach: .device("device-2"))
            history.handOutLast()
            return true
        },
    ]
}

// A push after all events of a history, in a channel of its own.
extension GeneratedHistory {
    static let lastDevice = "device-1"
    static let lastChannel = HistoryTarget(instance: "app", kind: .device, target: lastDevice, bizType: "LAST")
    static let lastID: Int64 = 1
    /// The id of the tombstone of the push.
    static let tombstoneID: Int64 = 2

    /// Adds a push to the last channel and its answer.
    mutating func pushLast(_ name: String = "last", id: Int64 = Self.lastID, reach: HistoryReach = .everyone) {
        events.append(.invoked(push: name, to: Self.lastChannel, reach: reach))
        events.append(.answered(push: name, id: id))
        stored.append((name, Self.lastChannel, id))
    }

    /// Adds the hand-out of the push.
    mutating func handOutLast(_ name: String = "last", id: Int64 = Self.lastID) {
        events.append(
            .given(
                HistoryHandOut(
                    device: Self.lastDevice, from: Self.lastChannel, id: id, push: name,
                    payload: Self.lastChannel.payload(of: name), attempt: 1)))
    }

    /// Adds a push, its hand-out and its confirmation.
    mutating func pushAndConfirm() {
        pushLast()
        handOutLast()
        events.append(.confirmed(device: Self.lastDevice, from: Self.lastChannel, id: Self.lastID))
    }

    /// Adds a recall of the push and its answer.
    mutating func recall() { events += [.recallBegan(push: "last"), .recalled(push: "last")] }

    /// Adds the hand-out of the tombstone.
    mutating func handOutTombstone(_ device: String = Self.lastDevice, id: Int64 = Self.tombstoneID) {
        events.append(.tombstone(device: device, from: Self.lastChannel, id: id, recalls: Self.lastID))
    }

    /// Adds events that do nothing; each event takes a second.
    mutating func wait(for duration: Duration) {
        for _ in 0...duration.components.seconds { events.append(.uncertain(push: "last")) }
    }

    /// Ends the validity of a push.
    mutating func end(_ push: String, at end: Duration) -> Bool {
        for (index, event) in events.enumerated() {
            guard case .invoked(push, let target, let reach, _) = event else { continue }
            events[index] = .invoked(push: push, to: target, reach: reach, validUntil: end)
            return true
        }
        return false
    }
}
