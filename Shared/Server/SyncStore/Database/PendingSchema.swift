/// The part of a build's schema that a database lacks.
package struct PendingSchema: Sendable, Hashable {
    /// In their order.
    package var migrations: [Migration] = []
    /// Files that the database lacks or has with another checksum, in their order.
    package var functions: [FunctionFile] = []
    /// New connections do not find the schema `delivery`. A dump that was restored lacks the setting of its database.
    package var lacksSearchPath = false

    package var isEmpty: Bool { names.isEmpty }

    /// The migrations, the files, and `search_path` for the setting of the database.
    package var names: [String] {
        migrations.map(\.name) + functions.map(\.name) + (lacksSearchPath ? ["search_path"] : [])
    }
}
