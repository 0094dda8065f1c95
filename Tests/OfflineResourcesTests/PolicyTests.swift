import Foundation
import Testing

@testable import OfflineResources

@Suite("Policies") struct PolicyTests {
    @Test("the library's defaults are the documented ones, and files have their own") func defaults() {
        let item = PolicyBook().policy(of: "/incidents/17", kind: .item)
        #expect(item.conflictResolutionPolicy.rawValue == "PRESERVE_CONFLICT")
        #expect(item.evictionPolicy.rawValue == "MANUAL_EVICTION")
        #expect(item.expirationPolicy.rawValue == "EXPIRE_ON_RESTART")
        #expect(item.expireAfter == .seconds(Int.max))
        #expect(item.fetchPolicy.rawValue == "FETCH_FROM_SERVICE_IF_ONLINE")
        #expect(!item.noCache)
        #expect(item.updatePolicy.rawValue == "QUEUE_IF_OFFLINE")
        #expect(PolicyBook().policy(of: "/incidents", kind: .collection) == item)
        let file = PolicyBook().policy(of: "/photos/1", kind: .file)
        #expect(file.conflictResolutionPolicy.rawValue == "SERVER_WINS")
        #expect(file.evictionPolicy.rawValue == "EVICT_ON_EXPIRY_AT_STARTUP")
        #expect(file.expirationPolicy.rawValue == "EXPIRE_AFTER")
        #expect(file.expireAfter == .seconds(86_400))
        #expect(file.fetchPolicy.rawValue == "FETCH_FROM_SERVICE_IF_ONLINE")
        #expect(file.updatePolicy.rawValue == "QUEUE_IF_OFFLINE")
        let settings = ResourceConfiguration(storePath: "")
        #expect(settings.maxStoreSize == 100_000_000)
        #expect(settings.periodicRefreshPolicy.rawValue == "REFRESH_NONE")
        #expect(settings.periodicRefreshInterval == .seconds(120))
    }

    @Test("all policy names are Oracle's") func names() {
        #expect(
            FetchPolicy.allCases.map(\.rawValue) == [
                "FETCH_FROM_CACHE", "FETCH_FROM_SERVICE", "FETCH_FROM_SERVICE_IF_ONLINE",
                "FETCH_FROM_SERVICE_ON_CACHE_MISS", "FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY",
                "FETCH_FROM_CACHE_SCHEDULE_REFRESH", "FETCH_WITH_REFRESH",
            ])
        #expect(ExpirationPolicy.allCases.map(\.rawValue) == ["EXPIRE_ON_RESTART", "EXPIRE_AFTER", "NEVER_EXPIRE"])
        #expect(EvictionPolicy.allCases.map(\.rawValue) == ["EVICT_ON_EXPIRY_AT_STARTUP", "MANUAL_EVICTION"])
        #expect(UpdatePolicy.allCases.map(\.rawValue) == ["UPDATE_IF_ONLINE", "QUEUE_IF_OFFLINE"])
        #expect(
            ConflictResolutionPolicy.allCases.map(\.rawValue) == ["CLIENT_WINS", "PRESERVE_CONFLICT", "SERVER_WINS"])
        #expect(
            PeriodicRefreshPolicy.allCases.map(\.rawValue) == [
                "REFRESH_NONE", "REFRESH_EXPIRED_ITEM_ON_STARTUP", "PERIODICALLY_REFRESH_EXPIRED_ITEMS",
            ])
        #expect(PinPriority.allCases.map(\.rawValue) == ["High", "Normal", "Low"])
        #expect(SyncNetworkStatus.allCases.map(\.rawValue) == ["SyncOnline", "SyncOffline", "SyncOfflineTest"])
    }

    @Test("each level of precedence overrides those below it, for each policy separately") func precedence() throws {
        // From the weakest level; each names its own time.
        let levels = 1...7
        func policy(_ level: Int) -> SyncPolicy { SyncPolicy(expireAfter: .seconds(level)) }
        for strongest in levels {
            var book = PolicyBook(backendDefault: policy(1))
            if strongest >= 2 { book.paths[try PathPattern("/**")] = policy(2) }
            if strongest >= 3 { book.paths[try PathPattern("/a/**")] = policy(3) }
            if strongest >= 4 { book.paths[try PathPattern("/a/*")] = policy(4) }
            if strongest >= 5 { book.paths[try PathPattern("a/b")] = policy(5) }
            let found = book.policy(
                of: "/a/b", kind: .file, request: strongest >= 6 ? policy(6) : SyncPolicy(),
                response: strongest >= 7 ? policy(7) : SyncPolicy())
            #expect(found.expireAfter == .seconds(strongest))
            // A policy that no level names stays the library's.
            #expect(found.evictionPolicy == .evictOnExpiryAtStartup)
        }
        let book = PolicyBook(
            paths: [
                try PathPattern("/a/b"): SyncPolicy(fetchPolicy: .fetchFromCache),
                try PathPattern("/a/*"): SyncPolicy(fetchPolicy: .fetchFromService, noCache: true),
            ], backendDefault: SyncPolicy(updatePolicy: .updateIfOnline, noCache: false))
        let mixed = book.policy(of: "/a/b", kind: .item)
        #expect(mixed.fetchPolicy == .fetchFromCache && mixed.noCache && mixed.updatePolicy == .updateIfOnline)
    }

    @Test(
        "a path without wildcard is exact, /* is one level, /** the base and everything below",
        arguments: [
            ("/a", ["/a"], ["/a/b", "/ab", "/"]), ("a/b", ["/a/b"], ["/a", "/a/b/c"]),
            ("/a/*", ["/a/b", "/a/*"], ["/a", "/a/b/c", "/ab/c"]), ("/*", ["/a"], ["/", "/a/b"]),
            ("/a/**", ["/a", "/a/b", "/a/b/c"], ["/ab", "/"]), ("/**", ["/a", "/a/b/c"], []),
            ("**", ["/a", "/a/b"], []), ("/", ["/"], ["/a"]),
        ])
    func patterns(_ text: String, _ matching: [String], _ others: [String]) throws {
        let pattern = try PathPattern(text)
        for path in matching { #expect(pattern.matches(path), "\(text) \(path)") }
        for path in others { #expect(!pattern.matches(path), "\(text) \(path)") }
    }

    @Test("a wildcard elsewhere than at the end is refused", arguments: ["/a/*/b", "/**/b", "/a*", "/a//b", "/a/../b"])
    func badPatterns(_ text: String) {
        #expect { try PathPattern(text) } throws: { ($0 as? ResourceError)?.code == .invalidArgument }
    }

    @Test("a policy file sets the policies that it names") func file() throws {
        let file = try PolicyFile(
            json: bytes(
                """
                {"synchronization": {"maxStoreSize": 20, "periodicRefreshPolicy": "PERIODICALLY_REFRESH_EXPIRED_ITEMS",
                 "periodicRefreshInterval": 60,
                 "defaultPolicy": {"fetchPolicy": "FETCH_WITH_REFRESH"},
                 "policies": [
                  {"path": "/incidents/*", "expirationPolicy": "EXPIRE_AFTER", "expireAfter": 600},
                  {"path": "notes/**", "conflictResolutionPolicy": "CLIENT_WINS", "noCache": true,
                   "evictionPolicy": "EVICT_ON_EXPIRY_AT_STARTUP", "updatePolicy": "UPDATE_IF_ONLINE"}]}}
                """))
        let settings = ResourceConfiguration(storePath: "", policyFile: file)
        #expect(settings.maxStoreSize == 20_000_000)
        #expect(settings.periodicRefreshPolicy == .periodicallyRefreshExpiredItems)
        #expect(settings.periodicRefreshInterval == .seconds(60))
        let incident = settings.policies.policy(of: "/incidents/1", kind: .item)
        #expect(incident.expirationPolicy == .expireAfter && incident.expireAfter == .seconds(600))
        #expect(incident.fetchPolicy == .fetchWithRefresh)
        let note = settings.policies.policy(of: "/notes", kind: .item)
        #expect(note.conflictResolutionPolicy == .clientWins && note.noCache && note.updatePolicy == .updateIfOnline)
        #expect(note.evictionPolicy == .evictOnExpiryAtStartup)
        #expect(
            ResourceConfiguration(storePath: "", policyFile: try PolicyFile(json: bytes("{}"))).maxStoreSize
                == 100_000_000)
    }

    @Test(
        "a mistake in a policy file is reported with its place and the allowed values",
        arguments: [
            ("{", "is not JSON"), ("[]", "must be an object"), (#"{"maxStoreSize": 0}"#, "maxStoreSize must be"),
            (#"{"maxStoreSize": "20"}"#, "maxStoreSize must be"),
            (#"{"maxStoresize": 1}"#, "maxStoresize is not known"),
            (
                #"{"defaultPolicy": {"fetchPolicy": "CACHE"}}"#,
                "defaultPolicy.fetchPolicy must be one of FETCH_FROM_CACHE"
            ),
            (#"{"policies": {}}"#, "policies must be a list"), (#"{"policies": [3]}"#, "policies[0] must be"),
            (#"{"policies": [{"noCache": true}]}"#, "policies[0].path is missing"),
            (#"{"policies": [{"path": "/a/*/b"}]}"#, "policies[0].path"),
            (#"{"policies": [{"path": "/a"}, {"path": "a"}]}"#, "policies[1].path is a repeated path"),
            (#"{"policies": [{"path": "/a", "noCache": "yes"}]}"#, "policies[0].noCache must be true or false"),
            (#"{"policies": [{"path": "/a", "expirationPolicy": "EXPIRE_AFTER"}]}"#, "needs expireAfter"),
            (#"{"policies": [{"path": "/a", "expireAfter": -1}]}"#, "expireAfter must be"),
            (#"{"policies": [{"path": "/a", "fetchpolicy": 1}]}"#, "policies[0].fetchpolicy is not known"),
            (#"{"synchronization": {}, "maxStoreSize": 1}"#, "maxStoreSize is not known"),
            (#"{"synchronization": {"periodicRefreshInterval": 1.5}}"#, "synchronization.periodicRefreshInterval"),
        ])
    func badFiles(_ json: String, _ part: String) {
        #expect {
            try PolicyFile(json: bytes(json))
        } throws: { error in
            guard let error = error as? ResourceError else { return false }
            return error.code == .policyFile && error.message.contains(part)
        }
    }

    @Test("a missing file is an error that names it") func missingFile() {
        #expect {
            try PolicyFile(contentsOf: URL(filePath: "/no/such/policies.json"))
        } throws: { ($0 as? ResourceError)?.message.contains("/no/such/policies.json") == true }
    }

    @Test("response headers set policies, by our names and Oracle's; with both, ours counts")
    func headers() {
        let now = Date(timeIntervalSince1970: 0)
        func read(_ fields: [(String, String)]) -> PolicyHeaders {
            var headers = ResourceHeaders()
            for field in fields { headers.add(field.0, field.1) }
            return PolicyHeaders(headers, now: now)
        }
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT")
        for prefix in ["MSS-Sync-", "Oracle-Mobile-Sync-", "oracle-mobile-sync-"] {
            #expect(read([(prefix + "No-Store", "true")]).policy == SyncPolicy(noCache: true))
            #expect(read([(prefix + "No-Store", "false")]).policy == SyncPolicy(noCache: false))
            #expect(
                read([date, (prefix + "Expires", "Sun, 06 Nov 1994 08:50:37 GMT")]).policy
                    == SyncPolicy(expirationPolicy: .expireAfter, expireAfter: .seconds(60)))
            #expect(
                read([date, (prefix + "Evict", "Sun, 06 Nov 1994 09:49:37 GMT")]).policy
                    == SyncPolicy(
                        expirationPolicy: .expireAfter, expireAfter: .seconds(3_600),
                        evictionPolicy: .evictOnExpiryAtStartup))
            #expect(read([(prefix + "Resource-Type", "File")]).kind == .file)
        }
        // In the past: expires at once; without a Date: by the device's clock; unreadable: ignored.
        #expect(read([date, ("MSS-Sync-Expires", "Sun, 06 Nov 1994 08:00:00 GMT")]).policy.expireAfter == .zero)
        #expect(read([("MSS-Sync-Expires", "Thu, 01 Jan 1970 00:00:09 GMT")]).policy.expireAfter == .seconds(9))
        #expect(read([("MSS-Sync-Expires", "tomorrow"), ("MSS-Sync-Resource-Type", "page")]).policy == SyncPolicy())
        #expect(
            read([("Oracle-Mobile-Sync-No-Store", "true"), ("MSS-Sync-No-Store", "false")]).policy.noCache == false)
    }
}
