import Foundation
import GRDB

/// The order and the sum of decimal columns, which SQLite stores as text, because its numbers have 15 digits.
enum DecimalOrder {
    static let name = "entity_decimal"
    static let sumName = "entity_decimal_sum"

    /// Compares the digits of two decimals.
    static let collation = DatabaseCollation(name) { left, right in
        guard let left = Decimal(string: left), let right = Decimal(string: right) else {
            return left.compare(right, options: .literal)
        }
        return left < right ? .orderedAscending : left > right ? .orderedDescending : .orderedSame
    }

    /// The exact sum; null for no value, as SQLite's `sum`.
    static let sum = DatabaseFunction(sumName, argumentCount: 1, pure: true, aggregate: Sum.self)

    private struct Sum: DatabaseAggregate {
        private var total: Decimal?

        mutating func step(_ values: [DatabaseValue]) {
            guard let value = String.fromDatabaseValue(values[0]).flatMap({ Decimal(string: $0) }) else { return }
            total = (total ?? 0) + value
        }

        func finalize() -> (any DatabaseValueConvertible)? { total.map { "\($0)" } }
    }
}
