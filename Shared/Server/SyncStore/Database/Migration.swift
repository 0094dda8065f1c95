/// One step of the tables: plain SQL, embedded in the binary, applied once, in order, and never edited after a release.
/// Functions are not part of it (`FunctionFile`).
package struct Migration: Sendable, Hashable {
    package let name: String
    package let script: String
    /// Builds that do not know the migration continue to work: it adds only objects that they neither read nor write,
    /// or columns with a default, and the functions of its build serve them too (`Functions/README.md`). While
    /// processes are replaced one by one, only an additive migration may be applied before them.
    package let isAdditive: Bool
    /// Where its objects are.
    package let scope: SchemaScope

    /// Kept in the history, so that an edited migration is detected.
    package var checksum: Int64 { OplogStore.stableHash(script) }

    package init(_ name: String, script: String, isAdditive: Bool, scope: SchemaScope = .service) {
        self.name = name
        self.script = script
        self.isAdditive = isAdditive
        self.scope = scope
    }

    private init(_ name: String, _ bytes: [UInt8], isAdditive: Bool = false, scope: SchemaScope = .service) {
        self.init(name, script: String(decoding: bytes, as: UTF8.self), isAdditive: isAdditive, scope: scope)
    }

    /// Every migration of this build, in order.
    package static let all = [
        Migration("m0001_epochs", PackageResources.m0001_epochs_sql),
        Migration("m0002_instances", PackageResources.m0002_instances_sql),
        Migration("m0003_admission", PackageResources.m0003_admission_sql),
        Migration("m0004_records", PackageResources.m0004_records_sql),
        Migration("m0005_channels", PackageResources.m0005_channels_sql, scope: .store),
        Migration("m0006_sessions", PackageResources.m0006_sessions_sql),
        Migration("m0007_receivers", PackageResources.m0007_receivers_sql, scope: .store),
        Migration("m0008_wake_ups", PackageResources.m0008_wake_ups_sql),
        Migration("m0009_rollouts", PackageResources.m0009_rollouts_sql),
        Migration("m0010_operations", PackageResources.m0010_operations_sql),
        Migration("m0011_statistics", PackageResources.m0011_statistics_sql),
        Migration("m0012_console", PackageResources.m0012_console_sql),
        Migration("m0013_diagnosis", PackageResources.m0013_diagnosis_sql),
        Migration("m0014_stores", PackageResources.m0014_stores_sql, isAdditive: true, scope: .store),
    ]
}
