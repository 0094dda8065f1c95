/// An event at the edge of the service. The order of events is the order in which they happened there.
package enum HistoryEvent: Sendable, Codable {
    /// A backend begins to push. Repeats of the same push are not reported.
    ///
    /// - Parameter validUntil: end of validity since the start of the run. The value is nil if the push does not
    /// expire within the
    ///   run.
    case invoked(push: String, to: HistoryTarget, reach: HistoryReach = .everyone, validUntil: Duration? = nil)
    /// One call carries these pushes in this order. Pushes to the same channel must get rising ids.
    case inOneCall(pushes: [String])
    /// The attempt can have stored the push: no response came, or the response leaves the outcome open.
    case uncertain(push: String)
    /// The caller of a non-persistent push gives up, so its outcome stays unknown.
    case abandoned(push: String)
    /// The push was answered with success, for the first time or again.
    case answered(push: String, id: Int64)
    /// The non-persistent push was answered with NOT_ONLINE: no device received it.
    case notOnline(push: String, id: Int64)
    /// A backend begins to recall a push. From now on no device must receive it.
    case recallBegan(push: String)
    /// The recall was answered with success. From now on no frame with the push is written.
    case recalled(push: String)
    /// A device without positions received the push, and the service has no record of that. The device need not receive
    /// the tombstone, and can receive it in any order.
    case notOnRecord(push: String, device: String)
    /// The clock that decides validity is set to a wrong time, or is correct again.
    case databaseClock(isRight: Bool)
    /// A device runs, bound to this user or to none. It need not receive later data of another user.
    case bound(device: String, instance: String, user: String?)
    /// The process of a device died. An oplog that was being handed out can come later with an attempt above 1.
    case crashed(device: String)
    /// An app received an oplog.
    case given(HistoryHandOut)
    /// An app received the tombstone of an earlier push of the channel.
    case tombstone(device: String, from: HistoryTarget, id: Int64, recalls: Int64)
    /// An app confirmed the oplog: it must never be handed out again.
    case confirmed(device: String, from: HistoryTarget, id: Int64)
    /// A frame with checked data arrived that was sent after the verdict lifetime of its session.
    case stale(device: String, bizType: String, session: String)
    /// The gateway opened a session for the device, with the user of its last bind.
    case opened(device: String)
    /// The connection of the device ended.
    case closed(device: String)
    /// The only eligible device of the channel is bound to another user now, so the data waits.
    case waitsForOwner(HistoryTarget)
    /// A failover lost commits: earlier answered pushes can be gone.
    case lostCommits
    /// After such a failover the database has an earlier owner of the user. That owner receives the single-device data
    /// until the later owner connects again.
    case ownerForgotten(HistoryTarget)
    /// An answered push is no longer in the database. Only `lostCommits` permits that.
    case forgotten(push: String)
}

/// One hand-out to an app.
package struct HistoryHandOut: Sendable, Codable {
    package let device: String
    /// The channel as the client names it. A global user channel names the user of the hand-out, or
    /// the bound user if the oplog names none.
    package let from: HistoryTarget
    package let id: Int64
    package let push: String
    package let payload: String
    /// 1 for the first hand-out, more for a resend.
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
