import Testing

@testable import OfflineResources
