/// One file of SQL functions, embedded in the binary. `mssctl migrate` applies all of them after the migrations when
/// one has changed. `Functions/README.md` says what a change must keep for processes of an older build.
package struct FunctionFile: Sendable, Hashable {
    /// The file's name in `Functions`.
    package let name: String
    package let script: String
    /// Where its functions are.
    package let scope: SchemaScope

    /// Recorded with each application, so that a changed file is detected.
    package var checksum: Int64 { OplogStore.stableHash(script) }

    package init(_ name: String, script: String, scope: SchemaScope = .service) {
        self.name = name
        self.script = script
        self.scope = scope
    }

    private init(_ name: String, _ bytes: [UInt8], scope: SchemaScope = .service) {
        self.init(name, script: String(decoding: bytes, as: UTF8.self), scope: scope)
    }

    /// Every file of this build, in the order of application. A function in the language SQL comes after the functions
    /// that it calls, and the views come first.
    package static let all = [
        FunctionFile("every_store.sql", PackageResources.every_store_sql),
        FunctionFile("epochs.sql", PackageResources.epochs_sql),
        FunctionFile("records.sql", PackageResources.records_sql),
        FunctionFile("instances.sql", PackageResources.instances_sql),
        FunctionFile("configurations.sql", PackageResources.configurations_sql),
        FunctionFile("keys.sql", PackageResources.keys_sql),
        FunctionFile("partitions.sql", PackageResources.partitions_sql, scope: .store),
        FunctionFile("oplogs.sql", PackageResources.oplogs_sql, scope: .store),
        FunctionFile("rollouts.sql", PackageResources.rollouts_sql, scope: .store),
        FunctionFile("sessions.sql", PackageResources.sessions_sql),
        FunctionFile("subscriptions.sql", PackageResources.subscriptions_sql, scope: .store),
        FunctionFile("wake_ups.sql", PackageResources.wake_ups_sql),
        FunctionFile("operations.sql", PackageResources.operations_sql),
        FunctionFile("operation_queries.sql", PackageResources.operation_queries_sql),
        FunctionFile("statistics_fold.sql", PackageResources.statistics_fold_sql),
        FunctionFile("statistics_reading.sql", PackageResources.statistics_reading_sql),
        FunctionFile("statistics_forgetting.sql", PackageResources.statistics_forgetting_sql),
        FunctionFile("accounts.sql", PackageResources.accounts_sql),
        FunctionFile("diagnosis.sql", PackageResources.diagnosis_sql),
    ]
}
