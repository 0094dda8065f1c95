import Foundation
import Testing

@testable import OfflineResources

@Suite("The source of a fetch, and the expiry of copies") struct FetchDecisionTests {
    /// For each policy: missing, fresh, expired; each online and offline. S: service, C: copy, CR: copy with refresh,
    /// N: nil, NR: nil with a fetch for the next time. Then + for a hit, - for a miss, . for no look-up.
    private static let table: [(FetchPolicy, [String])] = [
        (.fetchFromCache, ["N-", "N-", "C+", "C+", "C+", "C+"]),
        (.fetchFromService, ["S.", "N.", "S.", "N.", "S.", "N."]),
        (.fetchFromServiceIfOnline, ["S.", "N-", "S.", "C+", "S.", "C+"]),
        (.fetchFromServiceOnCacheMiss, ["S-", "N-", "C+", "C+", "C+", "C+"]),
        (.fetchFromServiceOnCacheMissOrExpiry, ["S-", "N-", "C+", "C+", "S-", "N-"]),
        (.fetchFromCacheScheduleRefresh, ["NR-", "N-", "CR+", "C+", "CR+", "C+"]),
        (.fetchWithRefresh, ["S-", "N-", "CR+", "C+", "S-", "N-"]),
    ]

    private static func short(_ decision: FetchDecision) -> String {
        let action =
            switch decision.action {
            case .service(stores: true): "S"
            case .service(stores: false): "s"
            case .copy(let refreshes): refreshes ? "CR" : "C"
            case .nothing(let refreshes): refreshes ? "NR" : "N"
            }
        return action + (decision.lookup == .hit ? "+" : decision.lookup == .miss ? "-" : ".")
    }

    @Test("each fetch policy, in each state of the cache, online and offline") func decisions() {
        #expect(Self.table.map(\.0) == FetchPolicy.allCases)
        for (fetchPolicy, expected) in Self.table {
            var policy = EffectivePolicy.standard
            policy.fetchPolicy = fetchPolicy
            let found = CopyState.allCases.flatMap { copy in
                [true, false].map { Self.short(FetchDecision(policy, copy: copy, isOnline: $0)) }
            }
            #expect(found == expected, "\(fetchPolicy.rawValue)")
            policy.noCache = true
            for copy in CopyState.allCases {
                #expect(Self.short(FetchDecision(policy, copy: copy, isOnline: true)) == "s.")
                #expect(Self.short(FetchDecision(policy, copy: copy, isOnline: false)) == "N.")
            }
        }
    }

    @Test("copies expire by restart, by age or never, and a push marks a copy under every policy")
    func expiry() {
        let fetched = Date(timeIntervalSince1970: 1_000_000)
        func state(_ expiration: ExpirationPolicy, after seconds: Int, age: Double, run: Int64, invalid: Bool = false)
            -> CopyState
        {
            var policy = EffectivePolicy.standard
            (policy.expirationPolicy, policy.expireAfter) = (expiration, .seconds(seconds))
            return .of(
                policy, fetchedAt: fetched, run: 7, isInvalid: invalid, now: fetched.addingTimeInterval(age),
                currentRun: run)
        }
        #expect(state(.expireOnRestart, after: 0, age: 1e9, run: 7) == .fresh)
        #expect(state(.expireOnRestart, after: 0, age: 0, run: 8) == .expired)
        #expect(state(.neverExpire, after: 0, age: 1e9, run: 99) == .fresh)
        #expect(state(.expireAfter, after: 60, age: 59.9, run: 99) == .fresh)
        #expect(state(.expireAfter, after: 60, age: 60, run: 7) == .expired)
        #expect(state(.expireAfter, after: 0, age: 0, run: 7) == .expired)
        #expect(state(.expireAfter, after: .max, age: 1e12, run: 7) == .fresh)
        // A clock that was set back gives no valid age.
        #expect(state(.expireAfter, after: .max, age: -1, run: 7) == .expired)
        for expiration in ExpirationPolicy.allCases {
            #expect(state(expiration, after: .max, age: 0, run: 7, invalid: true) == .expired)
        }
    }

    @Test("only an expired copy without edits is evicted at the start, where its policy requires it") func eviction() {
        for state in CopyState.allCases {
            for eviction in EvictionPolicy.allCases {
                for hasEdits in [true, false] {
                    var policy = EffectivePolicy.standard
                    policy.evictionPolicy = eviction
                    let expected = state == .expired && eviction == .evictOnExpiryAtStartup && !hasEdits
                    #expect(state.isEvictedAtStartup(policy, hasEdits: hasEdits) == expected)
                }
            }
        }
    }

    @Test("the status follows network, offline mode and failures") func connectivity() {
        let now = Date(timeIntervalSince1970: 0)
        func later(_ seconds: Double) -> Date { now.addingTimeInterval(seconds) }
        var state = Connectivity()
        #expect(state.status(at: now) == .online)
        #expect([state.setOfflineMode(true), state.setOfflineMode(true)] == [true, false])
        #expect(state.status(at: now) == .offlineTest)
        state.networkChanged(isAvailable: false)
        #expect(state.status(at: now) == .offline)
        // Without a network the switch has no effect.
        #expect([state.setOfflineMode(false)] == [false])
        state.networkChanged(isAvailable: true)
        #expect(state.status(at: now) == .offlineTest)
        #expect([state.setOfflineMode(false)] == [true])
        #expect(state.isOnline(at: now))
        // Pauses: 1, 2, 4 … 60 s, with a random part of a quarter.
        for expected in [1.0, 2, 4, 8, 16, 32, 60, 60] {
            state.failed(at: now, random: 1)
            #expect(abs((state.pause(at: now) ?? 0) - expected) < 0.01)
            #expect(state.status(at: now) == .offline)
            #expect(state.isOnline(at: later(expected)))
        }
        state.failed(at: now, retryAfter: 100, random: 0)
        #expect(state.pause(at: now) == 100)
        state.failed(at: now, retryAfter: 1e9, random: 0)
        #expect(state.pause(at: now) == 3_600)
        // A clock that was set back does not make the pause longer.
        #expect(state.isOnline(at: later(-10_000)))
        state.answered()
        #expect(state.isOnline(at: now))
        state.failed(at: now, random: 0)
        #expect(state.pause(at: now) == 0.75)
        state.networkChanged(isAvailable: true)
        #expect(state.isOnline(at: now))
    }
}
