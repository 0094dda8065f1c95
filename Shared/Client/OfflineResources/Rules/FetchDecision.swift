/// Decides how a fetch is executed, from the policy, the state of the cache and the connectivity (RES2).
struct FetchDecision: Sendable, Hashable {
    enum Action: Sendable, Hashable {
        /// Fetches from the backend.
        case service(stores: Bool)
        /// Returns the copy, and requests a refresh when `refreshes` is true.
        case copy(refreshes: Bool)
        /// Returns nil, and schedules a fetch for later use when `refreshes` is true.
        case nothing(refreshes: Bool)
    }

    /// The effect on `cacheHitCount` and `cacheMissCount`.
    enum Lookup: Sendable, Hashable {
        case hit
        case miss
        /// The policy did not look at the cache.
        case none
    }

    let action: Action
    let lookup: Lookup

    /// - Parameter isEmptyCollection: an empty collection counts as missing for the ON_CACHE_MISS policies.
    init(_ policy: EffectivePolicy, copy: CopyState, isEmptyCollection: Bool = false, isOnline: Bool) {
        let isOnMiss =
            policy.fetchPolicy == .fetchFromServiceOnCacheMiss
            || policy.fetchPolicy == .fetchFromServiceOnCacheMissOrExpiry
        let copy = isEmptyCollection && isOnMiss ? .missing : copy
        let service: Action = isOnline ? .service(stores: true) : .nothing(refreshes: false)
        if policy.noCache {
            (action, lookup) = (isOnline ? .service(stores: false) : .nothing(refreshes: false), .none)
            return
        }
        switch (policy.fetchPolicy, copy) {
        case (.fetchFromService, _):
            (action, lookup) = (service, .none)
        case (.fetchFromServiceIfOnline, _) where isOnline:
            (action, lookup) = (service, .none)
        case (.fetchFromCache, .missing), (.fetchFromServiceIfOnline, .missing):
            (action, lookup) = (.nothing(refreshes: false), .miss)
        case (.fetchFromCache, _), (.fetchFromServiceIfOnline, _), (.fetchFromServiceOnCacheMiss, .fresh),
            (.fetchFromServiceOnCacheMiss, .expired), (.fetchFromServiceOnCacheMissOrExpiry, .fresh):
            (action, lookup) = (.copy(refreshes: false), .hit)
        case (.fetchFromServiceOnCacheMiss, .missing), (.fetchFromServiceOnCacheMissOrExpiry, _),
            (.fetchWithRefresh, .missing), (.fetchWithRefresh, .expired):
            (action, lookup) = (service, .miss)
        case (.fetchFromCacheScheduleRefresh, .missing):
            (action, lookup) = (.nothing(refreshes: isOnline), .miss)
        case (.fetchFromCacheScheduleRefresh, _), (.fetchWithRefresh, .fresh):
            (action, lookup) = (.copy(refreshes: isOnline), .hit)
        }
    }
}
