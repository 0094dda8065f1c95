import Testing

@testable import LocalEntities

@Suite("Entities: the state of a row") struct PendingStateTests {
    /// The events of a row.
    enum Event: CaseIterable {
        case update, delete, recreate, submit, succeed, succeedWithCounter, fail, cancel, importVersion, importDeletion
    }

    /// Performs an event on an existing row.
    ///
    /// - Returns: nil: the row is deleted.
    private func after(_ event: Event, _ state: PendingState) -> PendingState? {
        var state = state
        let isGone: Bool
        switch event {
        case .update: isGone = !state.update() && false
        case .delete: isGone = state.delete() == .rowRemoved
        case .recreate: isGone = !state.recreate() && false
        case .submit: isGone = state.submit() == .send(.nothing)
        case .succeed: isGone = state.succeed(counter: nil) == .rowRemoved
        case .succeedWithCounter: isGone = state.succeed(counter: 9) == .rowRemoved
        case .fail: isGone = state.fail() == .rowRemoved
        case .cancel: isGone = state.cancel() == .rowRemoved
        case .importVersion: isGone = state.imported(exists: true, counter: 7) == .rowRemoved
        case .importDeletion: isGone = state.imported(exists: false, counter: 8) == .rowRemoved
        }
        return isGone ? nil : state
    }

    /// Checks the invariants of every state.
    private func faults(_ state: PendingState) -> [String] {
        let own = state.ownChange
        var faults: [String] = []
        func check(_ holds: Bool, _ what: String) { if !holds { faults.append(what) } }
        check((state.inFlight != nil) == (state.replayPending > 0), "a row in flight has a counter")
        check(state.inFlight == nil || own != .nothing, "a row in flight is pending")
        check(state.replayPending <= state.replayCounter, "the counter is not below the submitted one")
        check(own != .nothing || state.replayFailure == 0, "a settled row has no failure")
        check(own != .nothing || state.isOnServer, "a row that is here without a change is the server's")
        check(!(state.isEdited && state.isRemoved), "a row is edited or deleted")
        check(!state.isSubmissionWanted || state.inFlight != nil, "only a row in flight makes others wait")
        check(own != .delete || state.isOnServer || state.inFlight != nil, "a deletion is of a row that the server has")
        check([state.isCreated, state.isUpdated, state.isDeleted].filter { $0 }.count <= 1, "one thing at a time")
        check(state.isPending == (state.pendingChange != .nothing), "a pending row has a change")
        var parent = state
        parent.hasPendingChildren = true
        check(parent.pendingChange == (own == .nothing ? .parent : own), "P is of children only")
        let kept = PendingState(
            counter: state.replayCounter, pending: state.replayPending, failure: state.replayFailure,
            inFlight: state.inFlight?.rawValue, flags: state.flags)
        check(kept == state, "it is kept as it is")
        return faults
    }

    @Test("every sequence of six events keeps the invariants") func everySequence() {
        var seen: Set<PendingState> = [.created(), .imported(counter: 3)]
        var frontier = seen
        // States are values: equal states have the same next states, so each is checked once.
        for _ in 0..<6 {
            var reached: Set<PendingState> = []
            for state in frontier {
                for event in Event.allCases {
                    guard let next = after(event, state) else { continue }
                    let found = faults(next)
                    if !found.isEmpty { Issue.record("\(event) after \(state) gives \(next): \(found)") }
                    if seen.insert(next).inserted { reached.insert(next) }
                }
            }
            frontier = reached
        }
        #expect(seen.count > 200)
    }

    @Test("long random sequences keep the invariants, and a final accepted submission leaves nothing pending")
    func randomSequences() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var state: PendingState? = Bool.random(using: &generator) ? .created() : .imported(counter: 0)
            for _ in 0..<60 {
                guard let before = state, let event = Event.allCases.randomElement(using: &generator) else { break }
                state = after(event, before)
                let found = state.map { faults($0) } ?? []
                #expect(found.isEmpty, "seed \(seed): \(event) after \(before)")
                if let state, event != .succeedWithCounter, event != .importVersion, event != .importDeletion {
                    #expect(state.replayCounter >= before.replayCounter, "seed \(seed): \(event) after \(before)")
                }
            }
            for _ in 0..<3 {
                state = state.flatMap { after(.submit, $0) }.flatMap { after(.succeed, $0) }
            }
            #expect(state?.ownChange ?? .nothing == .nothing, "seed \(seed)")
        }
    }

    @Test("the counter rises with each change, is copied by a submission, and is the server's after success")
    func counters() {
        var state = PendingState.created()
        #expect(state.replayCounter == 1 && state.replayPending == 0 && state.pendingChange == .create)
        #expect(state.update() == true)
        #expect(state.submit() == .send(.create))
        #expect(state.replayCounter == 2 && state.replayPending == 2)
        #expect(state.submit() == .alreadySubmitted)
        #expect(state.succeed(counter: 40) == .settled)
        #expect(state.replayCounter == 40 && state.replayPending == 0 && state.replayFailure == 0)
        #expect(state.pendingChange == .nothing && !state.isPending)
    }

    @Test("a failure copies the counter, sets the submitted one to 0, and the row stays pending") func failure() {
        var state = PendingState.imported(counter: 5)
        #expect(state.update() == true)
        #expect(state.submit() == .send(.update))
        #expect(state.fail() == .pending(submitNow: false))
        #expect(state.replayFailure == 6 && state.replayPending == 0 && state.replayCounter == 6)
        #expect(state.pendingChange == .update)
        #expect(state.submit() == .send(.update))
        #expect(state.succeed(counter: nil) == .settled)
        #expect(state.replayFailure == 0 && state.replayCounter == 6)
    }

    @Test("a change after a submission stays pending, and is settled by the answer to its own submission")
    func changedSince() {
        var state = PendingState.created()
        #expect(state.submit() == .send(.create))
        #expect(state.update() == true)
        #expect(state.replayCounter > state.replayPending)
        #expect(state.submit() == .afterAnswer)
        #expect(state.succeed(counter: 9) == .pending(submitNow: true))
        #expect(state.pendingChange == .update && state.replayCounter == 2)
        #expect(state.submit() == .send(.update))
        #expect(state.fail() == .pending(submitNow: false))
    }

    @Test("deletions: a row unknown to the server, known to it, in transit to it, and created again") func deletions() {
        var fresh = PendingState.created()
        #expect(fresh.delete() == .rowRemoved)
        var known = PendingState.imported(counter: nil)
        #expect(known.delete() == .pending && known.delete() == .refused && !known.update())
        #expect(known.isDeleted && known.submit() == .send(.delete))
        #expect(known.recreate() && known.pendingChange == .update)
        #expect(known.succeed(counter: nil) == .pending(submitNow: false))
        #expect(known.pendingChange == .create, "the server has deleted the row that was created again")
        var flying = PendingState.created()
        #expect(flying.submit() == .send(.create) && flying.delete() == .pending)
        var refused = flying
        #expect(refused.fail() == .rowRemoved, "the server never had it")
        #expect(flying.succeed(counter: 3) == .pending(submitNow: false) && flying.isDeleted)
    }

    @Test("an import changes the server's values below an edit, and no edit") func imports() {
        var state = PendingState.imported(counter: 1)
        #expect(state.imported(exists: true, counter: 4) == .applied && state.replayCounter == 4)
        #expect(state.update() && state.imported(exists: true, counter: 9) == .originalChanged)
        #expect(state.replayCounter == 5 && state.pendingChange == .update)
        #expect(state.imported(exists: false, counter: 10) == .originalGone)
        #expect(state.pendingChange == .update, "the server decides about an edit of a deleted row")
        #expect(state.cancel() == .rowRemoved)
    }

    @Test("an impossible counter of the server is brought within bounds, and counting continues") func wildCounters() {
        for (counter, taken) in [(Int64.max, Int64(9_007_199_254_740_991)), (Int64.min, 0)] {
            var state = PendingState.imported(counter: counter)
            #expect(state.replayCounter == taken)
            #expect(state.update() && state.replayCounter == taken + 1)
        }
    }
}
