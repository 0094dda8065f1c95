/// What somebody at the edge of the service did or saw, in the order in which it happened there.
package enum HistoryEvent: Sendable, Codable {
    /// A backend begins to push; repeats of the same push are not told.
    ///
    /// - Parameter validUntil: when the push ends, since the run's beginning; nil: later than the run does.
    case invoked(push: String, to: HistoryTarget, reach: HistoryReach = .everyone, validUntil: Duration? = nil)
    /// One call carries these pushes in this order: pushes to one channel get rising ids in it.
    case inOneCall(pushes: [String])
    /// An attempt may have been stored: no answer came, or one that leaves it open.
    case uncertain(push: String)
    /// The caller of a live push gives up: whether a device was given it stays unknown.
    case abandoned(push: String)
    /// The push was answered with success, for the first time or once more.
    case answered(push: String, id: Int64)
    /// The push was answered with success, and that no device was there to take it; it is stored nowhere.
    case notOnline(push: String, id: Int64)
    /// A backend begins to recall a push: from now on no device has to get it.
    case recallBegan(push: String)
    /// The recall was answered with success: from now on no frame with the push is written.
    case recalled(push: String)
    /// A device without a store has taken the push, and the service has no record of that: its recall is not owed to
    /// it, and may come in any order.
    case notOnRecord(push: String, device: String)
    /// The clock that decides validity is set wrong, or is right again.
    case databaseClock(isRight: Bool)
    /// A device is there, as this user or as nobody; later data of another user is not owed to it.
    case bound(device: String, instance: String, user: String?)
    /// A device's process has died; what it was just being given may come as a later attempt without an earlier one.
    case crashed(device: String)
    /// An app was given something.
    case given(HistoryHandOut)
    /// An app was told that an earlier push of the channel was recalled.
    case tombstone(device: String, from: HistoryTarget, id: Int64, recalls: Int64)
    /// An app has confirmed what it was given: it must never come again.
    case confirmed(device: String, from: HistoryTarget, id: Int64)
    /// A frame with checked data came although its session's verdict cannot have counted any more when it was sent.
    case stale(device: String, bizType: String, session: String)
    /// The gateway has told a device that its session is open, as the user of its last bind.
    case opened(device: String)
    /// The connection of a device has ended.
    case closed(device: String)
    /// The only device that a channel's data may go to is another user's now: the data waits for it.
    case waitsForOwner(HistoryTarget)
    /// A database that lacked commits has taken over: what was answered before it may be gone.
    case lostCommits
    /// Such a database has an earlier owner of a user, who receives the user's single-device data until the later one
    /// has connected again.
    case ownerForgotten(HistoryTarget)
    /// An answered push is not in the database any more, as only `lostCommits` allows.
    case forgotten(push: String)
}

/// One hand-out to an app.
package struct HistoryHandOut: Sendable, Codable {
    package let device: String
    /// The channel as the client names it: its own user's, its own, or everybody's; of every user's, with the user in
    /// whose name it was given, since each has it once. Without a name, the user who is bound.
    package let from: HistoryTarget
    package let id: Int64
    package let push: String
    package let payload: String
    /// 1 for the first time; more when the app did not confirm in time.
    package let attempt: Int

    package init(device: String, from: HistoryTarget, id: Int64, push: String, payload: String, attempt: Int) {
        self.device = device
        self.from = from
        self.id = id
        self.push = push
        self.payload = payload
        self.attempt = attempt
    }
}
