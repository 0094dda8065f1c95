#if KNOWN_BAD
    import Foundation

    /// A rule of delivery that is broken on purpose: the tests must see it (deploy/known-bad).
    ///
    /// Only builds for that purpose have it; in every other build nothing of it is compiled.
    package enum KnownBad: String, CaseIterable, Sendable {
        // Ingest and bus.
        case successOnTimeout
        case notAttemptedOnTimeout
        case repeatsUnderAnotherKey
        case correlationIgnored
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
        case clientShowsAnyUser
        case clientAcknowledgesGap
        // What the database sees to: broken in the store in memory.
        case noEpoch
        case keysForgotten
        case pointFalls
        case headNotRaised
        case lateCommitNotSwept
        case controlVersionRepeats
        case leaseByDatabaseClock
        case strangerMovesSharedPoint

        /// These show in one session that anything happens to (`SessionWalk`): in a whole service it takes minutes of
        /// bad luck until they hurt somebody.
        package static let ofOneSession: [KnownBad] = [
            .leaseNotAsked, .resendWithoutEnd, .claimMovesSharedPoint, .writesNotChecked, .unverifiedTakesOwnership,
            .reconnectTakesOwnership, .supersededUnregistered,
        ]

        /// These show neither in a session's walk nor in the simulation, or there only by chance that is too rare: each
        /// has a test that must fail while the rule is broken.
        ///
        /// The tests are named as `swift test --filter` takes them.
        package static let ofTests: [(rule: KnownBad, test: String)] = [
            // A caller that got an error repeats the push under the same thirdMsgId, whatever the first command did.
            (.deadlineIgnored, "ServiceTests.CommandDeadlineTests"),
            // A push that could not be given answers UNKNOWN, which says nothing of the device.
            (.liveGapPassed, "ServiceTests.SessionLiveTests"),
            // A gateway misses a push only beside other faults, and presence is judged only while nothing fails.
            (.missedIsOffline, "ServiceTests.LiveDeliveryTests"),
            // A writer dies between commit and notice: nobody owes the push to anybody then.
            (.liveRepeatIsDuplicate, "ServiceTests.NoticePlanTests"),
            // The checker allows data that a failover has lost to reach an app, as it may have been under way.
            (.tailsOutliveEpoch, "ServiceTests.GlobalTailTests"),
            // Push scopes do not change in the simulation, and no store is put back from a copy.
            (.formerScopeWithheld, "ServiceTests.SessionScopeTests"),
            (.olderStorePassedOver, "ServiceTests.SessionScopeTests"),
            // The client library has a position of its own for each user, and claims it.
            (.globalSharedByUsers, "ServiceTests.SessionScopeTests"),
            // The page of a bind must meet the next bind of the same user, and a recall between them.
            (.pageOfEarlierBindTaken, "ServiceTests.UnwrittenDataTests"),
            // A recall must fall between two pages of one backlog, and no notice may tell the session of it.
            (.tombstoneOfWaitingDropped, "ServiceTests.UnwrittenDataTests"),
            // The client of the simulation takes what goes beyond its window.
            (.packetIDsNotAwaited, "ServiceTests.UnwrittenDataTests"),
            // The gateway lets no such position through to the store.
            (.strangerMovesSharedPoint, "SimulationTests.MemoryStoreTests"),
            // A gateway takes a new lease at once, and presence is judged only while nothing fails.
            (.leaseByDatabaseClock, "SimulationTests.MemoryStoreTests"),
        ]

        /// The one that is broken; set while nothing runs. `MSS_KNOWN_BAD_SWITCH` names it for a whole process.
        nonisolated(unsafe) package static var broken = ProcessInfo.processInfo.environment["MSS_KNOWN_BAD_SWITCH"]
            .flatMap { KnownBad(rawValue: $0) }

        /// Whether this one is broken.
        package var isOn: Bool { Self.broken == self }

        /// The rule, as it should be.
        package var rule: String {
            switch self {
            case .successOnTimeout: "no success without an answer"
            case .notAttemptedOnTimeout: "what left the process may have been stored"
            case .repeatsUnderAnotherKey: "a repeat has the thirdMsgId of the first"
            case .correlationIgnored: "an answer is of the request whose number it has"
            case .answersBeforeCommit: "no answer before the commit"
            case .duplicateAnsweredAsNew: "a duplicate is answered with the first's id"
            case .noticeSaysNothingBefore: "a notice says after what it comes"
            case .noticeDropsEntries: "a notice has all of its step"
            case .notOnlineOnSilence: "a silent gateway is no gateway that said no"
            case .pageSaysHead: "a full page reaches to its last oplog, not to the head"
            case .pageSkips: "a page has all from its start on"
            case .resendNotRecorded: "a repeat's count is answered once it is stored"
            case .advancesTooFar: "what is recorded is what was acknowledged"
            case .leaseBookCompleteAtOnce: "after a crash leases may be held that are not on record"
            case .deadlineIgnored: "a command past its deadline has no effect"
            case .halvesOnEveryRefusal: "a batch is halved only when the database refuses a value in it"
            case .thresholdCountsNew: "a threshold discards only what was there when the session opened"
            case .liveRepeatIsDuplicate: "a live push is a duplicate only once its outcome is known"
            case .ownClockJudges: "validity goes by the database's clock"
            case .liveGapPassed: "a session waits for the notice of data that is stored nowhere"
            case .missedIsOffline: "a connected device that could not be given a push was not offline"
            case .noticeTrusted: "a notice that leaves a gap is only a reason to read"
            case .noSweep: "what a lost notice left behind is found"
            case .noAnnouncement: "under a new lease every session announces itself"
            case .headsIgnored: "what is known of a head is read up to"
            case .ackUnclamped: "an acknowledgement counts up to what was sent"
            case .pointAtSend: "a sync point rises when the device has stored"
            case .settlesUnderWay: "nothing counts as stored while it is under way"
            case .leaseNotAsked: "without a lease nothing is handed out"
            case .verdictForever: "a verdict has an end"
            case .awaitedCountsAsValid: "data waits for the tenant's word when the last is too old"
            case .configuredLifetimeIgnored: "a configuration's verdict lifetime counts before its instance's"
            case .verdictFromAnswer: "a verdict is as old as its question"
            case .failOpen: "no answer is not a yes"
            case .invalidIgnored: "invalid ends the verdict"
            case .revocationIgnored: "a revocation ends the verdict at once"
            case .revocationNotLearned: "a registration learns of revocations"
            case .waitingNotReconsidered: "rules are asked again when what waited is written"
            case .recallOfWaitingIgnored: "a recalled oplog that waits to be written is not written"
            case .tombstoneOfWaitingDropped: "a tombstone follows an oplog that waits to be written"
            case .pageOfEarlierBindTaken: "a page that was asked for under an earlier bind is read again"
            case .packetIDsNotAwaited: "an MQTT client is sent data only when a packet id is free"
            case .bindNotCompared: "what waits for a former user is dropped"
            case .userDataKept: "a bind forgets the channels of the former user"
            case .targetingIgnored: "what is not for a device, or has expired, is passed over"
            case .resendBeforeRecord: "a repeat is on record before it goes out"
            case .resendWithoutEnd: "after six repeats there are no more"
            case .tailNotReadOn: "the tail of a global channel is read on"
            case .anyRegistrationTaken: "a registration's answer counts for the bind that it was for"
            case .openingFromHead: "a session begins at its sync point"
            case .fetchFailureForgotten: "a page that did not come is asked for again"
            case .bindNotRepeated: "a registration that failed is repeated"
            case .formerScopeWithheld: "oplogs of a former push scope still go out"
            case .olderStorePassedOver: "an older copy of a store gets again what it has lost"
            case .globalSharedByUsers: "each user of a shared device receives global data"
            case .tailsOutliveEpoch: "a new epoch forgets what was read of global channels in the epoch before"
            case .claimMovesSharedPoint: "a position that a device claims does not move the user's one sync point"
            case .writesNotChecked: "a device changes nothing of a user whose data it may not receive"
            case .unverifiedTakesOwnership: "a device owns a user only with a valid verdict, where owners are checked"
            case .reconnectTakesOwnership: "only a bind that the app asked for takes ownership"
            case .givenOwnershipForgotten: "an owner whom the store has lost is the owner again when it says so"
            case .supersededUnregistered: "a connection that is not registered yet learns that a newer one exists"
            case .clientBindNotCompared: "frames of a former user are dropped"
            case .clientGapIgnored: "a batch that leaves a gap is not stored"
            case .clientTakesKnown: "what is known is not stored anew"
            case .clientPointWithoutData: "a sync point rises with its data"
            case .clientHandsOutDescending: "the app is given oplogs in their order"
            case .clientHandOutUncounted: "a hand-out is counted before it"
            case .clientConfirmNotStored: "a confirmation is on the disk"
            case .clientForgetsUnconfirmed: "what was not confirmed waits again after a crash"
            case .clientNeverRepeats: "what is not confirmed comes again"
            case .clientShowsAnyUser: "data is shown to its user alone"
            case .clientAcknowledgesGap: "only what is stored is acknowledged"
            case .noEpoch: "ids of a new incarnation lie above all before"
            case .keysForgotten: "a thirdMsgId is stored once in its channel"
            case .pointFalls: "a sync point only rises"
            case .headNotRaised: "an id is drawn once"
            case .lateCommitNotSwept: "the sweep finds every commit, however long it took"
            case .controlVersionRepeats: "a version of control data names one state, also after a failover"
            case .leaseByDatabaseClock: "a jump of the database's clock ends no lease"
            case .strangerMovesSharedPoint: "only the owner moves the user's one sync point"
            }
        }
    }
#endif
