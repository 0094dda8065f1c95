/// One step of the schema: plain SQL, embedded in the binary, applied once, in order, and never edited afterwards.
package struct Migration: Sendable, Hashable {
    package let name: String
    package let script: String
    /// Builds that do not know it go on working: it adds what they neither read nor write, or what has a default. While
    /// processes are replaced one by one only such a migration may come before them.
    package let isAdditive: Bool

    /// What the history keeps, so that an edited migration is noticed.
    package var checksum: Int64 { OplogStore.stableHash(script) }

    package init(_ name: String, script: String, isAdditive: Bool) {
        self.name = name
        self.script = script
        self.isAdditive = isAdditive
    }

    private init(_ name: String, _ bytes: [UInt8]) {
        self.init(name, script: String(decoding: bytes, as: UTF8.self), isAdditive: false)
    }

    /// Every migration of this build, in order.
    package static let all = [
        Migration("m0001_oplog", PackageResources.m0001_oplog_sql),
        Migration("m0002_statistics", PackageResources.m0002_statistics_sql),
        Migration("m0003_statistics_fold", PackageResources.m0003_statistics_fold_sql),
        Migration("m0004_console", PackageResources.m0004_console_sql),
        Migration("m0005_wake_up", PackageResources.m0005_wake_up_sql),
        Migration("m0006_relay", PackageResources.m0006_relay_sql),
        Migration("m0007_subscription", PackageResources.m0007_subscription_sql),
        Migration("m0008_diagnosis", PackageResources.m0008_diagnosis_sql),
    ]
}
