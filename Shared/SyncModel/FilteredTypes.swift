/// The business types of an instance that have, or once had, a filter.
package struct FilteredTypes: Hashable, Sendable {
    package var bizTypes: [BizType]
    /// Another one where a filter, or what it goes by, is another.
    package var digest: Int

    package init(bizTypes: [BizType] = [], digest: Int = 0) {
        self.bizTypes = bizTypes
        self.digest = digest
    }

    /// Of these configurations of one instance.
    package init(_ configurations: [SyncConfiguration]) {
        let filtered = configurations.filter(\.isFiltered).sorted { $0.bizType.text.precedes($1.bizType.text) }
        bizTypes = filtered.map(\.bizType)
        var hasher = Hasher()
        for configuration in filtered {
            hasher.combine(configuration.bizType)
            hasher.combine(configuration.kind)
            hasher.combine(configuration.isMultiDevice)
            hasher.combine(configuration.subscription)
        }
        digest = filtered.isEmpty ? 0 : hasher.finalize()
    }
}
