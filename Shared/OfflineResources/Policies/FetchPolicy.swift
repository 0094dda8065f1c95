/// Where a fetch looks (spec, two-way §1); `FetchDecision` is the table.
public enum FetchPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Only the local copy, expired or not; without one: nil.
    case fetchFromCache = "FETCH_FROM_CACHE"
    /// Only the service; offline: nil.
    case fetchFromService = "FETCH_FROM_SERVICE"
    /// The service, and offline the local copy, expired or not. The default.
    case fetchFromServiceIfOnline = "FETCH_FROM_SERVICE_IF_ONLINE"
    /// The local copy, expired or not; without one the service.
    case fetchFromServiceOnCacheMiss = "FETCH_FROM_SERVICE_ON_CACHE_MISS"
    /// The local copy unless it has expired; else the service.
    case fetchFromServiceOnCacheMissOrExpiry = "FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY"
    /// The local copy, expired or not, which is then refreshed; without one nil, and it is fetched for the next time.
    case fetchFromCacheScheduleRefresh = "FETCH_FROM_CACHE_SCHEDULE_REFRESH"
    /// The local copy unless it has expired, which is then refreshed; else the service.
    case fetchWithRefresh = "FETCH_WITH_REFRESH"
}
