/// One SQL command with its parameters; prepared once per connection, at its first use.
package struct PostgresStatement: Sendable {
    /// A constant of the program: values travel as parameters `$1`, `$2`, … only.
    package let sql: String
    package let parameters: [PostgresValue]

    package init(_ sql: String, _ parameters: [PostgresValue] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}
