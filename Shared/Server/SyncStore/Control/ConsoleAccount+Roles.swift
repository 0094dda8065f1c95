package import SyncModel

extension ConsoleAccount {
    /// The words of its roles by instance id.
    package var rolesByInstance: [String: String] {
        Dictionary(uniqueKeysWithValues: grants.map { ($0.key.text, $0.value.word) })
    }
}
