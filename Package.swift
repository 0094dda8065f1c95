// swift-tools-version: 6.2
// The manifest is the architecture: a target imports only from lower layers, never sideways.
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

// An app that uses the client modules says `traits: []`, and resolves none of the packages of these traits.
let server: TargetDependencyCondition? = .when(traits: ["Server"])
let offlineResources: TargetDependencyCondition? = .when(traits: ["OfflineResources"])

// External products, each named once.
let argumentParser = Target.Dependency.product(
    name: "ArgumentParser", package: "swift-argument-parser", condition: server)
let asyncHTTPClient = Target.Dependency.product(
    name: "AsyncHTTPClient", package: "async-http-client", condition: offlineResources)
let configuration = Target.Dependency.product(name: "Configuration", package: "swift-configuration", condition: server)
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird", condition: server)
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird", condition: server)
let lifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: server)
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics", condition: server)
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics", condition: server)
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache", condition: server)
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioWebSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let protobuf = Target.Dependency.product(name: "SwiftProtobuf", package: "swift-protobuf")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle", condition: server)

// Layer 0: C libraries, the thread that owns a blocking handle, and programs that a process starts.
let cLibraries: [Target] = [
    .systemLibrary(
        name: "CRabbitMQ", path: "Shared/Drivers/CRabbitMQ", pkgConfig: "librabbitmq",
        providers: [.apt(["librabbitmq-dev"])]),
    .systemLibrary(name: "CLibPQ", path: "Shared/Drivers/CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(
        name: "COpenSSL", path: "Shared/Drivers/COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux", path: "Shared/Drivers/CLinux"),
    .target(
        name: "ConnectionThread", dependencies: ["COpenSSL", "CLinux"], path: "Shared/Drivers/ConnectionThread",
        swiftSettings: strict),
    .target(
        name: "ChildProcesses", dependencies: ["CLinux"], path: "Shared/Drivers/ChildProcesses", swiftSettings: strict),
]

// Layer 1: the rules of the product, pure; the lock and the executor of the client modules.
let model: [Target] = [
    .target(name: "SyncModel", path: "Shared/Model/SyncModel", swiftSettings: strict),
    .target(name: "Concurrency", path: "Shared/Model/Concurrency", swiftSettings: strict),
]

// Layer 2: formats and drivers.
let formatsAndDrivers: [Target] = [
    .target(
        name: "DeliveryHistory", dependencies: ["SyncModel"], path: "Shared/Testing/DeliveryHistory",
        swiftSettings: strict),
    .target(
        name: "BusMessages", dependencies: ["SyncModel", protobuf], path: "Shared/Messages/BusMessages",
        exclude: ["BusMessages.md", "bus_messages.proto"], swiftSettings: strict),
    .target(
        name: "DeviceProtocol", dependencies: ["SyncModel", protobuf, nioCore], path: "Shared/Device/DeviceProtocol",
        exclude: ["DeviceProtocol.md", "device_packet.proto"], swiftSettings: strict),
    .target(name: "MQTT", dependencies: [nioCore], path: "Shared/Device/MQTT", swiftSettings: strict),
    .target(
        name: "Credentials", dependencies: ["Concurrency", "SyncModel", crypto], path: "Shared/Model/Credentials",
        swiftSettings: strict),
    .target(
        name: "AMQP", dependencies: ["CRabbitMQ", "ConnectionThread", logging, lifecycle], path: "Shared/Drivers/AMQP",
        swiftSettings: strict),
    .target(
        name: "ServerTLS", dependencies: [nioCore, nioSSL, nioTLS, logging, metrics, lifecycle],
        path: "Shared/Drivers/ServerTLS", swiftSettings: strict),
    .target(
        name: "PostgreSQL", dependencies: ["CLibPQ", "ConnectionThread", logging], path: "Shared/Drivers/PostgreSQL",
        swiftSettings: strict),
]

// Layer 3: the base of services, the store, the client library.
let base: [Target] = [
    .target(
        name: "SyncStore", dependencies: ["SyncModel", "PostgreSQL", crypto, logging], path: "Shared/Server/SyncStore",
        exclude: ["Functions/README.md"], resources: [.embedInCode("Functions"), .embedInCode("Migrations")],
        swiftSettings: strict),
    .target(
        name: "ServiceKit",
        dependencies: [
            "BusMessages", "AMQP", "ConnectionThread", "Credentials", "SyncModel", "ServerTLS", "CLinux", protobuf,
            asyncHTTPClient, configuration, crypto, coreMetrics, hummingbird, lifecycle, logging, metrics, unixSignals,
            nioCore, nioHTTP1, nioSSL,
        ],
        path: "Shared/Server/ServiceKit", swiftSettings: strict),
    .target(
        name: "MobileSync",
        dependencies: [
            "Concurrency", "SyncModel", "DeviceProtocol", "Credentials", protobuf, crypto, cryptoExtras, grdb, logging,
            nioCore, nioPosix, nioSSL,
        ],
        path: "Shared/Client/MobileSync", exclude: ["README.md"], swiftSettings: strict),
]

// Layer 4: modules over the client library, for apps; calls of backends and of tenants.
let calls: [Target] = [
    .target(
        name: "BackendCalls", dependencies: ["ServiceKit", "BusMessages", "Credentials", "SyncModel", protobuf],
        path: "Shared/Server/BackendCalls", swiftSettings: strict),
    .target(
        name: "StoreService",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "SyncModel", "SyncStore", "PostgreSQL", "ConnectionThread", protobuf,
            logging,
        ], path: "Shared/Server/StoreService",
        swiftSettings: strict),
    .target(
        name: "TenantCalls",
        dependencies: ["ServiceKit", "SyncModel", nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS],
        path: "Shared/Server/TenantCalls", swiftSettings: strict),
    .target(
        name: "MobileSyncLegacy", dependencies: ["Concurrency", "MobileSync", "SyncModel", logging],
        path: "Shared/Client/MobileSyncLegacy", exclude: ["ObjectiveC"], swiftSettings: strict),
    .target(
        name: "LocalEntities", dependencies: ["Concurrency", "MobileSync", grdb, logging],
        path: "Shared/Client/LocalEntities", exclude: ["README.md"], swiftSettings: strict),
    .target(
        name: "OfflineResources",
        dependencies: ["Concurrency", "MobileSync", "SyncModel", asyncHTTPClient, grdb, logging, nioCore, nioHTTP1],
        path: "Shared/Client/OfflineResources", exclude: ["README.md"], swiftSettings: strict),
    .target(
        name: "JavaScriptClient", dependencies: [nioCore], path: "Shared/Client/JavaScript", exclude: ["README.md"],
        resources: [.embedInCode("Web")], swiftSettings: strict),
    .target(
        name: "ClientServices", dependencies: ["Concurrency", "MobileSync", crypto, grdb, logging],
        path: "Shared/Client/ClientServices", exclude: ["README.md"], swiftSettings: strict),
]

// Layer 5: programs that test a running system, as commands of mssctl.
let testPrograms: [Target] = [
    .target(
        name: "ToolSupport",
        dependencies: [
            "StoreService", "ServiceKit", "Credentials", "MobileSync", "PostgreSQL", argumentParser, crypto, logging,
            nioCore, nioHTTP1, nioPosix,
        ],
        path: "Shared/Server/ToolSupport", swiftSettings: strict),
    .target(
        name: "Conformance",
        dependencies: [
            "ToolSupport", "ChildProcesses", "Credentials", "DeviceProtocol", "MobileSync", "ServiceKit", "SyncModel",
            protobuf, argumentParser, asyncHTTPClient, nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS,
        ],
        path: "Shared/Testing/Conformance", exclude: ["README.md"], swiftSettings: strict),
    .target(
        name: "BareChain",
        dependencies: [
            "ToolSupport", "AMQP", "ConnectionThread", "DeviceProtocol", "PostgreSQL", "ServerTLS", "ServiceKit",
            protobuf, argumentParser, logging, nioCore, nioHTTP1, nioPosix, nioSSL,
        ],
        path: "Shared/Testing/BareChain", swiftSettings: strict),
    .target(
        name: "LoadGenerator",
        dependencies: [
            "ToolSupport", "ChildProcesses", "CLinux", "Credentials", "DeliveryHistory", "DeviceProtocol", "MobileSync",
            "PostgreSQL", "ServiceKit", "SyncModel", protobuf, argumentParser, asyncHTTPClient, nioCore, nioPosix,
            nioSSL,
        ],
        path: "Shared/Testing/LoadGenerator", swiftSettings: strict),
    .target(
        name: "Torture",
        dependencies: [
            "Conformance", "ToolSupport", "BusMessages", "ChildProcesses", "ConnectionThread", "DeliveryHistory",
            "DeviceProtocol", "MobileSync", "PostgreSQL", "SyncModel", protobuf, argumentParser, asyncHTTPClient,
            logging, nioCore, nioHTTP1, nioPosix, nioSSL, unixSignals,
        ],
        path: "Shared/Testing/Torture", swiftSettings: strict),
]

// Layer 6: one executable for each service.
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
            "StoreService",
            "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "SyncStore", "PostgreSQL",
            "ConnectionThread", protobuf, crypto, logging, metrics, lifecycle,
        ],
        path: "Services/OplogWriter", swiftSettings: strict),
    .executableTarget(
        name: "Gateway",
        dependencies: [
            "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "DeviceProtocol", "JavaScriptClient",
            "MQTT",
            "ServerTLS", protobuf, crypto, nioCore, nioHTTP1, nioPosix, nioSSL, nioTLS, nioWebSocket, logging, metrics,
            lifecycle,
        ],
        path: "Services/Gateway", swiftSettings: strict),
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
            "StoreService",
            "BackendCalls", "TenantCalls", "ServiceKit", "BusMessages", "AMQP", "Credentials", "SyncModel", "SyncStore",
            "PostgreSQL", "ConnectionThread", protobuf, crypto, nioHTTP1, logging, metrics, lifecycle,
        ],
        path: "Services/Relay", swiftSettings: strict),
    .executableTarget(
        name: "StatisticsAggregator",
        dependencies: [
            "StoreService",
            "ServiceKit", "BusMessages", "AMQP", "SyncModel", "SyncStore", "PostgreSQL", "ConnectionThread", protobuf,
            logging, metrics, lifecycle,
        ],
        path: "Services/StatisticsAggregator", swiftSettings: strict),
    .executableTarget(
        name: "Notifier",
        dependencies: [
            "StoreService",
            "ServiceKit", "BusMessages", "AMQP", "SyncModel", "SyncStore", "PostgreSQL", "ConnectionThread",
            asyncHTTPClient, crypto, cryptoExtras, logging, metrics, lifecycle, nioCore, nioHTTP1, nioSSL,
        ],
        path: "Services/Notifier", swiftSettings: strict),
    .executableTarget(
        name: "Console",
        dependencies: [
            "StoreService",
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
            "BareChain", "ChildProcesses", "Conformance", "LoadGenerator", "Torture", "ToolSupport", "ServiceKit",
            "BusMessages", "AMQP",
            "Credentials", "PostgreSQL", "StoreService", "SyncModel", "SyncStore", "MobileSync", protobuf,
            argumentParser, asyncHTTPClient, crypto, logging, nioCore, nioHTTP1, unixSignals,
        ],
        path: "Services/ControlTool", swiftSettings: strict),
]

// Programs that show how it is used.
let samples: [Target] = [
    .executableTarget(
        name: "FieldService",
        dependencies: [
            "ClientServices", "LocalEntities", "OfflineResources", "MobileSync", argumentParser, asyncHTTPClient,
            hummingbird, logging, nioCore, nioHTTP1,
        ],
        path: "deploy/samples/field-service", exclude: ["README.md", "README.zh.md", "iOS", "java"],
        swiftSettings: strict)
]

let tests: [Target] = [
    .target(
        name: "TestSupport",
        dependencies: [
            "SyncModel", "AMQP", "ChildProcesses", "PostgreSQL", "SyncStore", "ConnectionThread", lifecycle, logging,
        ],
        path: "Tests/TestSupport", swiftSettings: strict),
    .target(
        name: "LegacySamples", dependencies: ["MobileSyncLegacy"], path: "Tests/LegacySamples",
        exclude: ["ObjectiveC"], swiftSettings: strict),
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
            "StoreService", "ChildProcesses", "DeliveryHistory",
            "IngestAPI", "OplogWriter", "Gateway", "SessionValidator", "StatisticsAggregator", "Console", "ControlTool",
            "FieldService", "BareChain", "Conformance", "LoadGenerator", "Torture", "ToolSupport", "LocalEntities",
            "Notifier",
            "Relay", "TenantCalls", "BackendCalls", "ServiceKit",
            "Credentials", "Concurrency", "MobileSync",
            "MobileSyncLegacy", "BusMessages",
            "DeviceProtocol", "JavaScriptClient", "SyncModel", "AMQP", "MQTT", "PostgreSQL", "SyncStore", "TestSupport",
            "ServerTLS", "ConnectionThread",
            argumentParser, protobuf, coreMetrics, crypto, hummingbird, logging, nioCore, nioEmbedded, nioHTTP1,
            nioPosix, nioSSL, nioTLS, nioWebSocket,
        ],
        path: "Tests/ServiceTests", swiftSettings: strict),
    .testTarget(
        name: "LocalEntitiesTests", dependencies: ["LocalEntities", "MobileSync", "TestSupport", grdb, logging],
        path: "Tests/LocalEntitiesTests", swiftSettings: strict),
    .testTarget(
        name: "OfflineResourcesTests",
        dependencies: ["OfflineResources", "MobileSync", "TestSupport", grdb, hummingbird, logging, nioCore, nioHTTP1],
        path: "Tests/OfflineResourcesTests", swiftSettings: strict),
    .testTarget(
        name: "ClientServicesTests", dependencies: ["ClientServices", "MobileSync", crypto, grdb, logging],
        path: "Tests/ClientServicesTests", swiftSettings: strict),
    .testTarget(
        name: "SimulationTests",
        dependencies: [
            "StoreService",
            "BackendCalls", "OplogWriter", "Gateway", "MobileSync", "ServiceKit", "BusMessages", "DeviceProtocol",
            "Credentials", "DeliveryHistory", "SyncModel", "SyncStore", "AMQP", "PostgreSQL", "TestSupport", protobuf,
            "MQTT", logging, nioCore, nioEmbedded,
        ],
        // Optimised in debug builds too: its seeds are what a run of the tests has the time for.
        path: "Tests/SimulationTests", swiftSettings: strict + [.unsafeFlags(["-O"])]),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "StoreService", "ChildProcesses", "DeliveryHistory", "AMQP", "CRabbitMQ", "BusMessages", "PostgreSQL",
            "SyncStore", "SyncModel", "ConnectionThread", "Console", "Credentials", "OplogWriter", "Relay",
            "ServiceKit", "TestSupport", coreMetrics, lifecycle, logging, protobuf,
        ],
        path: "Tests/IntegrationTests", swiftSettings: strict),
    .testTarget(
        name: "EndToEndTests",
        dependencies: [
            "ChildProcesses", "DeliveryHistory", "MobileSync", "MobileSyncLegacy", "LegacySamples", "LocalEntities",
            "OfflineResources", "ClientServices", "Credentials", "DeviceProtocol", "SyncModel", "SyncStore",
            "TestSupport", "AMQP", "PostgreSQL", "BusMessages", protobuf, asyncHTTPClient, crypto, nioCore, nioHTTP1,
            nioPosix, nioSSL, nioWebSocket, logging,
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

// Only for `deploy/apple/xcframework.sh`: all client modules as one static library.
let framework: [Product] =
    Context.environment["MSS_XCFRAMEWORK"] == nil
    ? []
    : [
        .library(
            name: "MobileSyncKit", type: .static,
            targets: ["MobileSync", "MobileSyncLegacy", "LocalEntities", "OfflineResources", "ClientServices"])
    ]

let package = Package(
    name: "mobile-sync-service",
    // The client modules support these systems. The servers run on Linux.
    platforms: [.macOS(.v13), .iOS(.v16)],
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
    ] + framework,
    traits: [
        .default(enabledTraits: ["Server"]),
        .trait(
            name: "Server", description: "The services, the tool and the tests.",
            enabledTraits: ["OfflineResources"]),
        .trait(name: "OfflineResources", description: "HTTP for the client module of this name."),
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
    targets: cLibraries + model + formatsAndDrivers + base + calls + testPrograms + services + samples + tests + fuzzers
)
