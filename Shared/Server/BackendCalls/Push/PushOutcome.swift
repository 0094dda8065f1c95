package import SyncModel

/// Submits checked pushes to the store and waits for the outcomes.
package protocol PushSubmitting: Sendable {
    /// Returns within a bounded time. Never throws, because every failure is an outcome.
    ///
    /// - Parameter pushes: those to one target are stored in this order.
    func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome]
}

/// A push that its configuration accepts.
package struct AcceptedPush: Sendable {
    package let request: PushRequest
    /// The kind of the configuration's channels.
    package let kind: ChannelKind

    package init(_ request: PushRequest, by configuration: SyncConfiguration) {
        self.request = request
        kind = configuration.kind
    }
}

/// The result of submitting a push to the store.
package enum PushOutcome: Hashable, Sendable {
    /// Committed under this id; `online` when it was sent towards an eligible device.
    case stored(OplogID, online: Bool, validity: StoredValidity = .asAsked)
    /// The thirdMsgId was already stored, under this id.
    case duplicate(OplogID)
    /// The store refused the push, for the reason given to the caller.
    case refused(String)
    /// The configuration is now offline or deleted; nothing was stored.
    case noConfiguration
    /// The push never left this process.
    case notAttempted
    /// The push may be stored. Only a repeat with the same thirdMsgId can tell.
    case unknown
}

/// The validity that the store gave to a push, compared with the caller's request.
package enum StoredValidity: Hashable, Sendable {
    /// As the caller requested, or the instance's default without a request.
    case asAsked
    /// The caller requested more than the instance's retention: the push is valid until this time.
    case capped(WallTime)
    /// The end is in the past by the database's clock: no device receives the push.
    case over

    /// Clocks differ, so a difference below this is not reported.
    private static let slack = Duration.seconds(60)

    /// Compares the request with the store's reply.
    ///
    /// - Parameters:
    ///   - asked: the requested end; nil: none requested.
    ///   - validUntil: the end in force.
    ///   - storedAt: the database time of the commit.
    package init(asked: WallTime?, validUntil: WallTime, storedAt: WallTime) {
        if validUntil <= storedAt {
            self = .over
        } else if let asked, validUntil + Self.slack < asked {
            self = .capped(validUntil)
        } else {
            self = .asAsked
        }
    }

    /// The sentence for the caller; nil for `asAsked`.
    package var detail: String? {
        switch self {
        case .asAsked: nil
        case .capped(let end):
            "validTimeEnd is later than this instance keeps data; the push is valid until \(end.milliseconds)"
                + " (\(end.text))."
        case .over: "validTimeEnd lies in the past, so no device will receive the push."
        }
    }
}
