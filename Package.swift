// swift-tools-version: 6.2
// The manifest is the architecture: a target imports only from lower floors, never sideways.
import PackageDescription

// Only for `deploy/known-bad`: switches that each break a rule of delivery.
let knownBad: [SwiftSetting] = Context.environment["MSS_KNOWN_BAD"] == nil ? [] : [.define("KNOWN_BAD")]

let strict: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ] + knownBad

// External products, each named once.
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let configuration = Target.Dependency.product(name: "Configuration", package: "swift-configuration")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioWebSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let protobuf = Target.Dependency.product(name: "SwiftProtobuf", package: "swift-protobuf")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")

// Floor 0, ground: C libraries and the thread that owns a blocking handle.
let ground: [Target] = [
    .systemLibrary(
        name: "CRabbitMQ", path: "Shared/CRabbitMQ", pkgConfig: "librabbitmq", providers: [.apt(["librabbitmq-dev"])]),
    .systemLibrary(name: "CLibPQ", path: "Shared/CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(
        name: "COpenSSL", path: "Shared/COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux", path: "Shared/CLinux"),
    .target(
        name: "ConnectionThread", dependencies: ["COpenSSL", "CLinux"], path: "Shared/ConnectionThread",
        swiftSettings: strict),
]

// Floor 1, words: the domain rules, pure.
let words: [Target] = [
    .target(name: "SyncModel", path: "Shared/SyncModel", swiftSettings: strict)
]

// Floor 2, formats and drivers.
let formatsAndDrivers: [Target] = [
    .target(
        name: "DeliveryHistory", dependencies: ["SyncModel"], path: "Shared/DeliveryHistory", swiftSettings: strict),
    .target(
        name: "BusMessages", dependencies: ["SyncModel", protobuf], path: "Shared/BusMessages",
        exclude: ["BusMessages.md", "bus_messages.proto"], swiftSettings: strict),
    .target(
        name: "DeviceProtocol", dependencies: ["SyncModel", protobuf, nioCore], path: "Shared/DeviceProtocol",
        exclude: ["DeviceProtocol.md", "device_packet.proto"], swiftSettings: strict),
    .target(name: "MQTT", dependencies: [nioCore], path: "Shared/MQTT", swiftSettings: strict),
    .target(
        name: "Credentials", dependencies: ["SyncModel", crypto], path: "Shared/Credentials", swiftSettings: strict),
    .target(
        name: "AMQP", dependencies: ["CRabbitMQ", "ConnectionThread", logging, lifecycle], path: "Shared/AMQP",
        swiftSettings: strict),
    .target(
        name: "ServerTLS", dependencies: [nioCore, nioSSL, nioTLS, logging, metrics, lifecycle],
        path: "Shared/ServerTLS", swiftSettings: strict),
    .target(
        name: "PostgreSQL", dependencies: ["CLibPQ", "ConnectionThread", logging], path: "Shared/PostgreSQL",
        swiftSettings: strict),
]

// Floor 3, kits.
let kits: [Target] = [
    .target(
        name: "SyncStore", dependencies: ["SyncModel", "PostgreSQL", logging], path: "Shared/SyncStore",
        resources: [.embedInCode("Migrations")], swiftSettings: strict),
    .target(
        name: "ServiceKit",
        dependencies: [
            "BusMessages", "AMQP", "Credentials", "SyncModel", "ServerTLS", "CLinux", protobuf, asyncHTTPClient,
            configuration, crypto, coreMetrics, hummingbird, lifecycle, logging, metrics, unixSignals, nioCore,
            nioHTTP1, nioSSL,
        ],
        path: "Shared/ServiceKit", swiftSettings: strict),
    .target(
        name: "MobileSync",
        dependencies: [
            "SyncModel", "DeviceProtocol", "Credentials", protobuf, crypto, grdb, logging, nioCore, nioPosix, nioSSL,
        ],
        path: "Shared/MobileSync", exclude: ["README.md"], swiftSettings: strict),
]

// Floor 4, faces: the vendor guide's API over the client library, for apps; what a backend may ask for, for those who
// serve it; calls of tenants.
let faces: [Target] = [
    .target(
        name: "BackendCalls", dependencies: ["ServiceKit", "BusMessages", "Credentials", "SyncModel", protobuf],
        path: "Shared/BackendCalls", swiftSettings: strict),
    .target(
        name: "TenantCalls",
        dependencies: ["ServiceKit", "SyncModel", nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS],
        path: "Shared/TenantCalls", swiftSettings: strict),
    .target(
        name: "MobileSyncLegacy", dependencies: ["MobileSync", "SyncModel", logging], path: "Shared/MobileSyncLegacy",
        swiftSettings: strict),
    .target(
        name: "LocalEntities", dependencies: ["MobileSync", grdb, logging], path: "Shared/LocalEntities",
        exclude: ["README.md"], swiftSettings: strict),
    .target(
        name: "OfflineResources", dependencies: ["MobileSync", asyncHTTPClient, grdb, logging, nioCore, nioHTTP1],
        path: "Shared/OfflineResources", exclude: ["README.md"], swiftSettings: strict),
    .target(
        name: "ClientServices", dependencies: ["MobileSync", crypto, grdb, logging], path: "Shared/ClientServices",
        exclude: ["README.md"], swiftSettings: strict),
]

// Floor 5, services: one executable each.
let services: [Target] = [
    .executableTarget(
        name: "IngestAPI",
        dependencies: [
            "BackendCalls", "ServiceKit", "BusMessages", "Credentials", "SyncModel", "ServerTLS", protobuf,
            asyncHTTPClient, hummingbirdCore, nioCore, nioHTTP1, nioPosix, logging, metrics, lifecycle, nioSSL,
        ],
        path: "Services/IngestAPI", resources: [.embedInCode("OpenAPI")], swiftSettings: strict),
    .executableTarget(
        name: "OplogWriter",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "SyncStore", "PostgreSQL",
            "ConnectionThread", protobuf, crypto, logging, metrics, lifecycle,
        ],
        path: "Services/OplogWriter", swiftSettings: strict),
    .executableTarget(
        name: "Gateway",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "DeviceProtocol", "MQTT", "ServerTLS",
            protobuf, crypto, nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS, nioWebSocket, logging, metrics, lifecycle,
        ],
        path: "Services/Gateway", resources: [.embedInCode("Web")], swiftSettings: strict),
    .executableTarget(
        name: "SessionValidator",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "TenantCalls", protobuf, crypto, nioHTTP1,
            logging, metrics, lifecycle,
        ],
        path: "Services/SessionValidator", swiftSettings: strict),
    .executableTarget(
        name: "Relay",
        dependencies: [
            "BackendCalls", "TenantCalls", "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "SyncStore",
            "PostgreSQL", "ConnectionThread", protobuf, crypto, nioHTTP1, logging, metrics, lifecycle,
        ],
        path: "Services/Relay", swiftSettings: strict),
    .executableTarget(
        name: "StatisticsAggregator",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "SyncModel", "SyncStore", "PostgreSQL", "ConnectionThread", protobuf,
            logging, metrics, lifecycle,
        ],
        path: "Services/StatisticsAggregator", swiftSettings: strict),
    .executableTarget(
        name: "Notifier",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "SyncModel", "SyncStore", "PostgreSQL", "ConnectionThread",
            asyncHTTPClient, crypto, cryptoExtras, logging, metrics, lifecycle, nioCore, nioHTTP1, nioSSL,
        ],
        path: "Services/Notifier", swiftSettings: strict),
    .executableTarget(
        name: "Console",
        dependencies: [
            "BackendCalls", "ServiceKit", "BusMessages", "Credentials", "SyncModel", "SyncStore", "PostgreSQL",
            "ConnectionThread", "ServerTLS", protobuf, hummingbird, mustache, crypto, cryptoExtras, logging, metrics,
            lifecycle, nioCore,
            nioHTTP1, nioSSL,
        ],
        path: "Services/Console", exclude: ["README.md", "Pictures"], resources: [.embedInCode("Web")],
        swiftSettings: strict),
    .executableTarget(
        name: "ControlTool",
        dependencies: [
            "CLinux", "ServiceKit", "BusMessages", "AMQP", "Credentials", "PostgreSQL", "SyncModel", "SyncStore",
            "MobileSync", "DeviceProtocol", "DeliveryHistory", "ConnectionThread", protobuf, argumentParser,
            asyncHTTPClient, crypto, logging, lifecycle, nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS, unixSignals,
        ],
        path: "Services/ControlTool", exclude: ["Conformance/README.md"], swiftSettings: strict),
]

// Programs that show how it is used.
let samples: [Target] = [
    .executableTarget(
        name: "FieldService",
        dependencies: [
            "LocalEntities", "OfflineResources", "MobileSync", argumentParser, asyncHTTPClient, hummingbird, logging,
            nioCore, nioHTTP1,
        ],
        path: "deploy/samples/field-service", exclude: ["README.md"], swiftSettings: strict)
]

let tests: [Target] = [
    .target(
        name: "TestSupport",
        dependencies: ["SyncModel", "AMQP", "PostgreSQL", "SyncStore", "ConnectionThread", logging],
        path: "Tests/TestSupport", swiftSettings: strict),
    .target(
        name: "LegacySamples", dependencies: ["MobileSyncLegacy"], path: "Tests/LegacySamples", swiftSettings: strict),
    .testTarget(
        name: "SyncModelTests", dependencies: ["DeliveryHistory", "SyncModel", "TestSupport"],
        path: "Tests/SyncModelTests",
        swiftSettings: strict),
    .testTarget(
        name: "WireTests",
        dependencies: [
            "DeliveryHistory", "BusMessages", "DeviceProtocol", "SyncModel", "TestSupport", protobuf, nioCore,
            nioEmbedded,
        ],
        path: "Tests/WireTests", swiftSettings: strict),
    .testTarget(
        name: "ServiceTests",
        dependencies: [
            "DeliveryHistory",
            "IngestAPI", "OplogWriter", "Gateway", "SessionValidator", "StatisticsAggregator", "Console", "ControlTool",
            "FieldService", "LocalEntities", "Notifier", "Relay", "TenantCalls", "BackendCalls", "ServiceKit",
            "Credentials", "MobileSync",
            "MobileSyncLegacy", "BusMessages",
            "DeviceProtocol", "SyncModel", "AMQP", "MQTT", "PostgreSQL", "SyncStore", "TestSupport", "ServerTLS",
            argumentParser, protobuf, coreMetrics, crypto, hummingbird, logging, nioCore, nioEmbedded, nioHTTP1,
            nioPosix, nioSSL, nioTLS, nioWebSocket,
        ],
        path: "Tests/ServiceTests", swiftSettings: strict),
    .testTarget(
        name: "LocalEntitiesTests", dependencies: ["LocalEntities", "MobileSync", grdb, logging],
        path: "Tests/LocalEntitiesTests", swiftSettings: strict),
    .testTarget(
        name: "OfflineResourcesTests",
        dependencies: ["OfflineResources", "MobileSync", grdb, hummingbird, logging, nioCore, nioHTTP1],
        path: "Tests/OfflineResourcesTests", swiftSettings: strict),
    .testTarget(
        name: "ClientServicesTests", dependencies: ["ClientServices", "MobileSync", crypto, grdb, logging],
        path: "Tests/ClientServicesTests", swiftSettings: strict),
    .testTarget(
        name: "SimulationTests",
        dependencies: [
            "BackendCalls", "OplogWriter", "Gateway", "MobileSync", "ServiceKit", "BusMessages", "DeviceProtocol",
            "Credentials", "DeliveryHistory", "SyncModel", "SyncStore", "AMQP", "PostgreSQL", "TestSupport", protobuf,
            "MQTT", logging, nioCore, nioEmbedded,
        ],
        // Optimised in debug builds too: its seeds are what a run of the tests has the time for.
        path: "Tests/SimulationTests", swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "DeliveryHistory",
            "AMQP", "CRabbitMQ", "BusMessages", "PostgreSQL", "SyncStore", "SyncModel", "ConnectionThread",
            "Console", "Credentials", "OplogWriter", "Relay", "ServiceKit", "TestSupport", coreMetrics, lifecycle,
            logging, protobuf,
        ],
        path: "Tests/IntegrationTests", swiftSettings: strict),
    .testTarget(
        name: "EndToEndTests",
        dependencies: [
            "DeliveryHistory",
            "MobileSync", "MobileSyncLegacy", "LegacySamples", "LocalEntities", "OfflineResources", "ClientServices",
            "Credentials", "DeviceProtocol", "SyncModel", "SyncStore", "TestSupport", "AMQP", "PostgreSQL",
            "BusMessages", protobuf, asyncHTTPClient, crypto, nioCore, nioHTTP1, nioPosix, nioSSL, nioWebSocket,
            logging,
        ],
        path: "Tests/EndToEndTests",
        exclude: ["mqtt_cases.py", "mqtt_device.py", "push_providers.py", "trace_collector.py"],
        swiftSettings: strict),
    .testTarget(
        name: "HouseRulesTests", path: "Tests/HouseRulesTests", swiftSettings: strict),
]

// Only for `deploy/fuzz`: it links where libFuzzer brings the main function.
let fuzzers: [Target] =
    Context.environment["MSS_FUZZ"] == nil
    ? []
    : [
        .executableTarget(
            name: "FuzzFrames", dependencies: ["DeviceProtocol", protobuf, nioCore], path: "Tests/Fuzz/FuzzFrames",
            swiftSettings: strict)
    ]

let package = Package(
    name: "mobile-sync-service",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "MobileSync", targets: ["MobileSync"]),
        .library(name: "MobileSyncLegacy", targets: ["MobileSyncLegacy"]),
        .library(name: "LocalEntities", targets: ["LocalEntities"]),
        .library(name: "OfflineResources", targets: ["OfflineResources"]),
        .library(name: "ClientServices", targets: ["ClientServices"]),
        .executable(name: "mss-ingest", targets: ["IngestAPI"]),
        .executable(name: "mss-oplog-writer", targets: ["OplogWriter"]),
        .executable(name: "mss-gateway", targets: ["Gateway"]),
        .executable(name: "mss-session-validator", targets: ["SessionValidator"]),
        .executable(name: "mss-statistics", targets: ["StatisticsAggregator"]),
        .executable(name: "mss-notifier", targets: ["Notifier"]),
        .executable(name: "mss-relay", targets: ["Relay"]),
        .executable(name: "mss-console", targets: ["Console"]),
        .executable(name: "mssctl", targets: ["ControlTool"]),
        .executable(name: "mss-field-service", targets: ["FieldService"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: ground + words + formatsAndDrivers + kits + faces + services + samples + tests + fuzzers
)
