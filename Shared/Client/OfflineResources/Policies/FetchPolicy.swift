/// Where a fetch reads: in the cache, at the backend, or both (RES2). "The service" in these names is the app's
/// backend.
public enum FetchPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Only the local copy, expired or not; without a copy nil.
    case fetchFromCache = "FETCH_FROM_CACHE"
    /// Only the backend; offline nil.
    case fetchFromService = "FETCH_FROM_SERVICE"
    /// The backend; offline the local copy, expired or not. The default.
    case fetchFromServiceIfOnline = "FETCH_FROM_SERVICE_IF_ONLINE"
    /// The local copy, expired or not; without a copy the backend.
    case fetchFromServiceOnCacheMiss = "FETCH_FROM_SERVICE_ON_CACHE_MISS"
    /// The local copy unless it is expired; otherwise the backend.
    case fetchFromServiceOnCacheMissOrExpiry = "FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY"
    /// The local copy, expired or not, which is then refreshed. Without a copy nil; the resource is then fetched for
    /// later.
    case fetchFromCacheScheduleRefresh = "FETCH_FROM_CACHE_SCHEDULE_REFRESH"
    /// The local copy unless it is expired; it is then refreshed. Otherwise the backend.
    case fetchWithRefresh = "FETCH_WITH_REFRESH"
}
