import ClientServices
import LocalEntities
import MobileSync
import OfflineResources

/// The app of a signed-in user, without a user interface: a store for each module, and `SyncApp`, which runs them.
///
/// Each task of the app has a file: start, live list, edit, conversation, photo.
struct FieldApp: Sendable {
    let device: FieldDevice
    let sync: SyncApp
    let entities: EntityStore
    let resources: ResourceClient
    let badges: Badges
}
