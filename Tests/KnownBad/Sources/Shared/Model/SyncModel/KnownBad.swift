import Foundation

/// A switch that breaks one rule of delivery. `deploy/known-bad` turns on one after the other, and a test must detect
/// each.
///
/// The mutations test the switches. Only the copy of the project that `deploy/scripts/mutate.py` makes has this file.
package enum KnownBad: String, CaseIterable, Sendable {
    // Ingest and bus.
    case successOnTimeout
    case notAttemptedOnTimeout
    case repeatsUnderAnotherKey
    case correlationIgnored
    case refusedCommandWaits
    // Oplog writer.
    case answersBeforeCommit
    case duplicateAnsweredAsNew
    case noticeSaysNothingBefore
    case noticeDropsEntries
    case notOnlineOnSilence
    case pageSaysHead
    case pageSkips
    case resendNotRecorded
    case advancesTooFar
    case leaseBookCompleteAtOnce
    case halvesOnEveryRefusal
    case deadlineIgnored
    case thresholdCountsNew
    case liveRepeatIsDuplicate
    // Gateway.
    case ownClockJudges
    case liveGapPassed
    case missedIsOffline
    case noticeTrusted
    case noSweep
    case noAnnouncement
    case headsIgnored
    case ackUnclamped
    case pointAtSend
    case settlesUnderWay
    case leaseNotAsked
    case verdictForever
    case replyOfAnyAge
    case awaitedCountsAsValid
    case configuredLifetimeIgnored
    case verdictFromAnswer
    case failOpen
    case invalidIgnored
    case revocationIgnored
    case revocationNotLearned
    case waitingNotReconsidered
    case recallOfWaitingIgnored
    case tombstoneOfWaitingDropped
    case pageOfEarlierBindTaken
    case packetIDsNotAwaited
    case bindNotCompared
    case pauseUnseen
    case userDataKept
    case targetingIgnored
    case resendBeforeRecord
    case resendWithoutEnd
    case tailNotReadOn
    case anyRegistrationTaken
    case openingFromHead
    case fetchFailureForgotten
    case bindNotRepeated
    case formerScopeWithheld
    case olderStorePassedOver
    case globalSharedByUsers
    case tailsOutliveEpoch
    case claimMovesSharedPoint
    case writesNotChecked
    case unverifiedTakesOwnership
    case reconnectTakesOwnership
    case givenOwnershipForgotten
    case supersededUnregistered
    // Client.
    case clientBindNotCompared
    case clientGapIgnored
    case clientTakesKnown
    case clientPointWithoutData
    case clientHandsOutDescending
    case clientHandOutUncounted
    case clientConfirmNotStored
    case clientForgetsUnconfirmed
    case clientNeverRepeats
    case deviceClockJudges
    case clientShowsAnyUser
    case clientAcknowledgesGap
    // Database, in the simulation's store.
    case noEpoch
    case keysForgotten
    case pointFalls
    case headNotRaised
    case lateCommitNotSwept
    case controlVersionRepeats
    case leaseByDatabaseClock
    case strangerMovesSharedPoint

    /// `SessionWalk` must detect these. In a simulation of the whole service they cause a fault too rarely.
    package static let ofOneSession: [KnownBad] = [
        .leaseNotAsked, .resendWithoutEnd, .claimMovesSharedPoint, .writesNotChecked, .unverifiedTakesOwnership,
        .reconnectTakesOwnership, .supersededUnregistered,
    ]

    /// Neither a session's walk nor the simulation detects these reliably. The named test must fail while the rule is
    /// broken.
    ///
    /// A name is the suite's in `swift test --filter`.
    package static let ofTests: [(rule: KnownBad, test: String)] = [
        // A caller that got an error repeats the push under the same thirdMsgId after any outcome.
        (.deadlineIgnored, "ServiceTests.CommandDeadlineTests"),
        // The caller gets an error 5 s later, and a full queue is rare.
        (.refusedCommandWaits, "ServiceTests.CommandRefusalTests"),
        // A process must be paused within the microseconds between check and write.
        (.pauseUnseen, "ServiceTests.UnwrittenDataTests"),
        // The simulation's devices have no wall clock that a user sets.
        (.deviceClockJudges, "ServiceTests.LocalStoreUpkeepTests"),
        // A call must take longer than the lifetime, and its session must end meanwhile.
        (.replyOfAnyAge, "ServiceTests.SessionVerdictTests"),
        // A push that was not handed out is answered with UNKNOWN, which is a correct answer for every device.
        (.liveGapPassed, "ServiceTests.SessionLiveTests"),
        // A gateway misses a push only during other faults, and presence is checked only while nothing fails.
        (.missedIsOffline, "ServiceTests.NonPersistentDeliveryTests"),
        // The writer must end between commit and notice. The push is owed to no device then.
        (.liveRepeatIsDuplicate, "ServiceTests.NoticePlanTests"),
        // The checker accepts that an app receives data that a failover has lost: it may have been in flight.
        (.tailsOutliveEpoch, "ServiceTests.GlobalChannelCacheTests"),
        // In the simulation push scopes do not change, and no local store is restored from a copy.
        (.formerScopeWithheld, "ServiceTests.SessionScopeTests"),
        (.olderStorePassedOver, "ServiceTests.SessionScopeTests"),
        // The client library keeps a position for each user and reports it.
        (.globalSharedByUsers, "ServiceTests.SessionScopeTests"),
        // The page of a bind must meet the next bind of the same user, and a recall between them.
        (.pageOfEarlierBindTaken, "ServiceTests.UnwrittenDataTests"),
        // A recall must happen between two pages of one backlog, and its notice must be lost.
        (.tombstoneOfWaitingDropped, "ServiceTests.UnwrittenDataTests"),
        // The simulation's client accepts data beyond its window.
        (.packetIDsNotAwaited, "ServiceTests.UnwrittenDataTests"),
        // The gateway sends no such position to the store.
        (.strangerMovesSharedPoint, "SimulationTests.MemoryStoreTests"),
        // A gateway takes a new lease at once, and presence is checked only while nothing fails.
        (.leaseByDatabaseClock, "SimulationTests.MemoryStoreTests"),
        // Rare in the simulation: not in its first 485 seeds.
        (.leaseBookCompleteAtOnce, "ServiceTests.LeaseExpiryTrackerTests"),
        (.anyRegistrationTaken, "ServiceTests.SessionRegistrationTests"),
    ]

    // Safe without a lock: tests set it only while nothing that reads it runs.
    /// The switch that is on. `MSS_KNOWN_BAD_SWITCH` names it for a whole process.
    nonisolated(unsafe) package static var broken = ProcessInfo.processInfo.environment["MSS_KNOWN_BAD_SWITCH"]
        .flatMap { KnownBad(rawValue: $0) }

    /// Whether the rule is broken.
    package var isOn: Bool { Self.broken == self }

    /// The rule that the switch breaks, for the table that `deploy/known-bad` prints.
    package var rule: String {
        switch self {
        case .successOnTimeout: "a request without a reply is not reported as a success"
        case .notAttemptedOnTimeout: "a sent push without a reply may have been stored"
        case .repeatsUnderAnotherKey: "a retry has the thirdMsgId of the first attempt"
        case .correlationIgnored: "a reply belongs to the request with its correlation number"
        case .refusedCommandWaits: "a command that a full queue refuses ends its request at once"
        case .answersBeforeCommit: "the writer replies after the commit"
        case .duplicateAnsweredAsNew: "the reply to a duplicate has the first oplog id"
        case .noticeSaysNothingBefore: "a notice names the id that precedes its range"
        case .noticeDropsEntries: "a notice has all entries of its range"
        case .notOnlineOnSilence: "a gateway that does not reply has not said that the device is offline"
        case .pageSaysHead: "a full page reaches to its last oplog, not to the head"
        case .pageSkips: "a page has every oplog of its range"
        case .resendNotRecorded: "the writer replies to a resend count after it has stored the count"
        case .advancesTooFar: "a sync point rises to the acknowledged id only"
        case .leaseBookCompleteAtOnce: "after a crash gateways may hold leases that are not on record"
        case .deadlineIgnored: "a command after its deadline has no effect"
        case .halvesOnEveryRefusal: "a batch is halved only when the database refuses a value in it"
        case .thresholdCountsNew: "a threshold discards only oplogs that existed when the session opened"
        case .liveRepeatIsDuplicate: "a non-persistent push is a duplicate only when its outcome is known"
        case .ownClockJudges: "validity is judged by the database's clock"
        case .liveGapPassed: "a session waits for the notice of a non-persistent push"
        case .missedIsOffline: "a connected device that missed a push was not offline"
        case .noticeTrusted: "a notice that leaves a gap only causes a read"
        case .noSweep: "the sweep finds the data of a lost notice"
        case .noAnnouncement: "under a new lease every session registers again"
        case .headsIgnored: "a session reads up to the known head"
        case .ackUnclamped: "an acknowledgement counts up to the sent id"
        case .pointAtSend: "a sync point rises when the device has stored the data"
        case .settlesUnderWay: "data in flight does not count as stored"
        case .leaseNotAsked: "a gateway without a lease sends no data"
        case .verdictForever: "a verdict expires"
        case .replyOfAnyAge: "a verdict that is too old when it comes does not count"
        case .awaitedCountsAsValid: "data waits for a new verdict when the last one is too old"
        case .configuredLifetimeIgnored: "a configuration's verdict lifetime replaces its instance's"
        case .verdictFromAnswer: "a verdict's age counts from its request"
        case .failOpen: "a missing verdict is not a valid verdict"
        case .invalidIgnored: "the verdict invalid ends an earlier valid verdict"
        case .revocationIgnored: "a revocation ends the verdict at once"
        case .revocationNotLearned: "the reply to a registration tells of revocations"
        case .waitingNotReconsidered: "the rules are checked again when a waiting batch is written"
        case .recallOfWaitingIgnored: "a recalled oplog in a waiting batch is not written"
        case .tombstoneOfWaitingDropped: "a tombstone follows an oplog that waits to be written"
        case .pageOfEarlierBindTaken: "a page of an earlier bind is read again"
        case .packetIDsNotAwaited: "an MQTT client is sent data only when a packet id is free"
        case .bindNotCompared: "a waiting batch of a former user is dropped"
        case .pauseUnseen: "a batch whose check is older than 10 ms is checked again"
        case .userDataKept: "a bind removes the channels of the former user"
        case .targetingIgnored: "an oplog that is expired or not for the device is skipped"
        case .resendBeforeRecord: "a resend is recorded before it is sent"
        case .resendWithoutEnd: "after six resends there are no more"
        case .tailNotReadOn: "the tail of a global channel is read up to the head"
        case .anyRegistrationTaken: "a registration reply counts only for its own bind"
        case .openingFromHead: "a session begins at its sync point"
        case .fetchFailureForgotten: "a failed page request is retried"
        case .bindNotRepeated: "a failed registration is retried"
        case .formerScopeWithheld: "oplogs of a former push scope are still sent"
        case .olderStorePassedOver: "an older copy of a local store receives again the data that it lacks"
        case .globalSharedByUsers: "each user of a shared device receives global data"
        case .tailsOutliveEpoch: "a new database epoch removes the cached tails of global channels"
        case .claimMovesSharedPoint: "a reported position does not move the user's one sync point"
        case .writesNotChecked: "a device changes nothing of a user whose data it may not receive"
        case .unverifiedTakesOwnership: "where owners are checked, only a device with a valid verdict becomes the owner"
        case .reconnectTakesOwnership: "only a bind that the app requested takes ownership"
        case .givenOwnershipForgotten: "an owner that the store has lost becomes the owner again when it reconnects"
        case .supersededUnregistered: "a connection that is not registered yet learns that a newer one exists"
        case .clientBindNotCompared: "frames of a former user are dropped"
        case .clientGapIgnored: "a batch that leaves a gap is not stored"
        case .clientTakesKnown: "a known oplog is not stored again"
        case .clientPointWithoutData: "a sync point rises together with its data"
        case .clientHandsOutDescending: "the app receives oplogs in ascending order"
        case .clientHandOutUncounted: "a hand-out is counted before it happens"
        case .clientConfirmNotStored: "a confirmation is stored on disk"
        case .clientForgetsUnconfirmed: "after a crash an unconfirmed oplog is handed out again"
        case .clientNeverRepeats: "an unconfirmed oplog is handed out again"
        case .deviceClockJudges: "setting the device's clock ends no validity while the process runs"
        case .clientShowsAnyUser: "data is shown to its own user only"
        case .clientAcknowledgesGap: "only stored data is acknowledged"
        case .noEpoch: "ids of a new database epoch lie above all earlier ids"
        case .keysForgotten: "a thirdMsgId is stored once in its channel"
        case .pointFalls: "a sync point never falls"
        case .headNotRaised: "an oplog id is used once"
        case .lateCommitNotSwept: "the sweep finds every commit, however long it took"
        case .controlVersionRepeats: "a control version names one state, also after a failover"
        case .leaseByDatabaseClock: "a jump of the database's clock ends no lease"
        case .strangerMovesSharedPoint: "only the owner moves the user's one sync point"
        }
    }
}
